//go:build guest && linux

package interop

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestCAPI runs the program of docs/c.md on rxe against the soft RNIC, as the
// one that receives and as the one that sends.
func TestCAPI(t *testing.T) {
	t.Setenv("RDMASHIM_DEVICE", "rxe0")
	t.Run("receives", func(t *testing.T) {
		e := partner(t, families[0], 1024, 4096)
		port := freePort(t)
		p := startCompiled(t, "hello", strconv.Itoa(port))
		introduction := must.Get(e.device.ConnectOver(wait(t), dial(t, port), e.qp, []uapi.MR{e.mr}, nil))(t)
		require.Len(t, introduction.Regions, 1)
		there := introduction.Regions[0]
		const text = "hello from the soft RNIC\x00"
		copy(e.source(), text)
		must.Get(e.device.PostWrite(e.qp, e.mr, 0, there.Addr, there.RKey, uint64(len(text))))(t)
		e.success(t, uapi.WCOpWrite)
		must.Get(e.device.PostSend(e.qp, e.mr, 1))(t)
		e.success(t, uapi.WCOpSend)
		require.Equal(t, "hello from the soft RNIC\n", p.ends(t))
		count(2, len(text)+1)
	})
	t.Run("sends", func(t *testing.T) {
		e := partner(t, families[0], 1024, 4096)
		must.Get(e.device.LocalEndpoint(e.qp))(t) // so that it takes receives
		e.post(t, uapi.WR{Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: e.mr, Offset: uint64(e.half), Length: 1}}})
		accept, port := listen(t)
		p := startCompiled(t, "hello", strconv.Itoa(port), "127.0.0.1")
		must.Get(e.device.ConnectOver(wait(t), accept(), e.qp, []uapi.MR{e.mr}, nil))(t)
		e.success(t, uapi.WCOpRecv)
		require.Equal(t, "hello from C", string(e.mem[:12]))
		require.Equal(t, "sent\n", p.ends(t))
		count(2, 14)
	})
}
