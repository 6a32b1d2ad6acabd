//go:build guest && linux

package nvme

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/lab/suite"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/nvme"
	"github.com/rdmashim/rdmashim/uapi"
)

const kernelNQN = "nqn.2026-11.rdmashim:kernel"

// TestNVMet: the sample's host writes the kernel's target and reads the same
// bytes, in bursts without faults, and with packets lost at both ends. The
// receive buffer, of 4 MiB as for root, takes rxe's bursts.
func TestNVMet(t *testing.T) {
	require.NoError(t, suite.ServeNVMet(kernelNQN, rxeAddr, "/dev/ram0"))
	for _, c := range []struct {
		name, options string
		depth         int
		loss          bool
	}{{"bursts", "", 32, false}, {"loss", "?loss=1%&reorder=2%&seed=7", 4, true}} {
		t.Run(c.name, func(t *testing.T) {
			if c.loss {
				netem(t)
			}
			var d *uapi.Device
			require.NoError(t, space.Do(func() (err error) {
				d, err = uapi.Open("soft:"+softAddr+c.options, uapi.OpenConfig{})
				return err
			}))
			defer func() { require.NoError(t, d.Close()) }()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			h := must.Get(nvme.Connect(ctx, d, rxeAddr+":4420", nvme.HostConfig{Subsystem: kernelNQN, Queues: 2, Depth: c.depth}))(t)
			ns := h.Namespaces[1]
			load := ns.Load()
			load.Bytes, load.Seed = mib, 5
			wrote := must.Get(load.Write(ctx))(t)
			require.NoError(t, ns.Flush(ctx))
			read, err := load.Check(ctx)
			require.NoError(t, errors.Join(err, h.Close()))
			n := must.Get(d.Counters())(t)
			t.Logf("%v; %v; %d of %d packets found no room", wrote, read, n["drop_rcvbuf"], n["rcvd_pkts"])
			require.NotZero(t, n["rcvd_pkts"])
			require.LessOrEqual(t, 1000*n["drop_rcvbuf"], n["rcvd_pkts"], "0.1 %% of them")
		})
	}
}

// netem has the kernel lose one in a hundred of the packets that rxe sends,
// until the test's end.
func netem(t *testing.T) {
	t.Helper()
	eth0 := must.Get(netlink.LinkByName("eth0"))(t)
	q := netlink.NewNetem(netlink.QdiscAttrs{LinkIndex: eth0.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		netlink.NetemQdiscAttrs{Loss: 1})
	require.NoError(t, netlink.QdiscAdd(q))
	t.Cleanup(func() { require.NoError(t, netlink.QdiscDel(q)) })
}
