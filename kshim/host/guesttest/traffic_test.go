//go:build guest && linux

package guesttest

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestPostingAllocatesNothing: also where a post is a system call.
func TestPostingAllocatesNothing(t *testing.T) {
	for _, name := range []string{device, device + "?doorbell=raw"} {
		p := connect(t, name, 64)
		wr := []uapi.WR{{Op: uapi.OpWrite, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: p.ma, Length: 8}}, RemoteAddr: p.at.Addr, RKey: p.at.RKey}}
		wc := make([]uapi.WC, 4)
		var failed error
		round := func() {
			if _, err := p.a.Post(p.qa, wr); err != nil {
				failed = err
			}
			for n := 0; n == 0 && failed == nil; {
				n, failed = p.a.PollCQ(p.qa, wc)
				if n > 0 && wc[0].Err() != nil {
					failed = wc[0].Err()
				}
			}
		}
		round()
		require.Zero(t, testing.AllocsPerRun(200, round), name)
		require.NoError(t, failed)
	}
}

// TestOneUDPPort: the kernel's device cannot reach a soft device elsewhere than
// at the port that RoCE has.
func TestOneUDPPort(t *testing.T) {
	p := connect(t, device, 64)
	there := must.Get(p.b.LocalEndpoint(p.qb))(t)
	qp := must.Get(p.a.CreateQP(1, 1))(t)
	require.ErrorIs(t, p.a.ConnectQP(qp, uapi.Endpoint{
		Addr: netip.AddrPortFrom(there.Addr.Addr(), 5000), QPN: 17, MTU: 1024, MaxRdAtomic: 1,
	}), syscall.EADDRNOTAVAIL)
}
