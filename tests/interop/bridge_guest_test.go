//go:build guest && linux

package interop

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/uapi"
)

// bridged are two rxe devices, each on an end of a veth pair; the bridge joins
// the other ends.
var bridged = [2]struct {
	rxe, netdev, port string
	addr              netip.Addr
	mac               net.HardwareAddr
}{
	{"rxe7", "left0", "left1", netip.MustParseAddr("10.78.0.1"), net.HardwareAddr{2, 0, 0, 0, 0x78, 1}},
	{"rxe8", "right0", "right1", netip.MustParseAddr("10.78.0.2"), net.HardwareAddr{2, 0, 0, 0, 0x78, 2}},
}

// overWire makes the pairs and the devices. What this machine sends to itself
// goes by lo unless a rule of routing comes before the table of its own
// addresses: packets to the one device then leave by the other's interface.
func overWire(t *testing.T) {
	const table, first, local = 78, 10, 100
	rule := func(priority, table int) *netlink.Rule {
		r := netlink.NewRule()
		r.Priority, r.Table, r.Family = priority, table, unix.AF_INET
		return r
	}
	own := rule(local, unix.RT_TABLE_LOCAL)
	require.NoError(t, netlink.RuleAdd(own))
	require.NoError(t, netlink.RuleDel(rule(0, unix.RT_TABLE_LOCAL)))
	t.Cleanup(func() {
		require.NoError(t, netlink.RuleAdd(rule(0, unix.RT_TABLE_LOCAL)))
		require.NoError(t, netlink.RuleDel(own))
	})
	m := must.Get(netlinkmgr.Open())(t)
	for i, b := range bridged {
		other := bridged[1-i]
		a := netlink.NewLinkAttrs()
		a.Name, a.HardwareAddr = b.netdev, b.mac
		require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: b.port}))
		l := must.Get(netlink.LinkByName(b.netdev))(t)
		t.Cleanup(func() { require.NoError(t, netlink.LinkDel(l)) })
		require.NoError(t, netlink.LinkSetUp(must.Get(netlink.LinkByName(b.port))(t)))
		require.NoError(t, netlink.LinkSetUp(l))
		require.NoError(t, netlink.AddrAdd(l, must.Get(netlink.ParseAddr(b.addr.String()+"/32"))(t)))
		require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/conf/"+b.netdev+"/accept_local", []byte("1"), 0o644))
		require.NoError(t, netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: other.addr.AsSlice(), HardwareAddr: other.mac}))
		there := &net.IPNet{IP: other.addr.AsSlice(), Mask: net.CIDRMask(32, 32)}
		require.NoError(t, netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Table: table, Scope: netlink.SCOPE_LINK, Dst: there}))
		leaves := rule(first, table)
		leaves.IifName, leaves.Dst = "lo", there
		require.NoError(t, netlink.RuleAdd(leaves))
		t.Cleanup(func() { require.NoError(t, netlink.RuleDel(leaves)) })
		require.NoError(t, m.AddLink(t.Context(), b.rxe, "rxe", b.netdev))
		t.Cleanup(func() { require.NoError(t, m.DeleteLink(context.Background(), b.rxe)) })
	}
}

// openAt opens one of the devices, with the GID of its address.
func openAt(t *testing.T, name string, addr netip.Addr) *device {
	var d *uapi.Device
	require.Eventually(t, func() bool {
		i := gidOn(name, addr)
		if i < 0 {
			return false
		}
		var err error
		d, err = uapi.Open(name, uapi.OpenConfig{GIDIndex: new(i)})
		return err == nil
	}, patience, 10*time.Millisecond, "%s has no GID %v", name, addr)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return newDevice(t, name, d, 1<<18)
}

// TestBridge: rxe READs from rxe through the bridge, which loses exactly the
// third response. All bytes arrive, and the capture of what left the bridge
// shows the gap, the request that asks again and the answer.
func TestBridge(t *testing.T) {
	overWire(t)
	path := filepath.Join(t.TempDir(), "left.pcapng")
	bridge := tool(t, false, "bridge", bridged[0].port, bridged[1].port, "--fault", "drop op=READ_RESPONSE_* nth=3", "--pcap", path)
	bridge.says(t, "bridging")
	a, b := newPair(t, openAt(t, bridged[0].rxe, bridged[0].addr), openAt(t, bridged[1].rxe, bridged[1].addr), uapi.QPConfig{MTU: 1024, Timeout: 134 * time.Millisecond})
	const packets = 10
	move(t, a, b, message{op: uapi.OpRead, wc: uapi.WCOpRead}, packets*1024, 1)
	require.NoError(t, bridge.Process.Signal(os.Interrupt))
	text := bridge.ends(t)
	require.Regexp(t, `(?m)^fault_rule_1 +0 +1 `, text)
	require.Regexp(t, `(?m)^dropped +0 +1 `, text)

	r := must.Get(dissect.NewReader(bytes.NewReader(must.Get(os.ReadFile(path))(t)), wire.Port, dissect.MaxUnzipped))(t)
	requests := 0
	var answers []int64 // numbers, from the first request's
	var first wire.PSN
	for {
		var p dissect.Packet
		err := r.Next(&p)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Equal(t, dissect.OK, p.ICRC)
		switch op := p.Wire.Opcode; {
		case op == wire.RCReadRequest:
			require.Equal(t, bridged[1].port, p.Interface)
			if requests++; requests == 1 {
				first = p.Wire.PSN
			}
		case wire.RCReadResponseFirst <= op && op <= wire.RCReadResponseOnly:
			require.Equal(t, bridged[0].port, p.Interface)
			answers = append(answers, int64(p.Wire.PSN.Sub(first)))
		}
	}
	require.Greater(t, requests, 1, "the lost response was not asked for again")
	require.Equal(t, []int64{0, 1, 3}, answers[:3], "the third response is lost, and no other before it")
	require.Contains(t, answers[3:], int64(2), "it came when it was asked for again")
	for n := range int64(packets) {
		require.Contains(t, answers, n)
	}
	t.Logf("%d requests, answers %v", requests, answers)
}
