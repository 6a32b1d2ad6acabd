//go:build guest && linux

package interop

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestSoftCMEnds: over the wire, in both directions, a queue pair that is
// connected a second time is stale to its peer, which ends the first
// connection. The soft RNIC asks its peer first, and rxe answers.
func TestSoftCMEnds(t *testing.T) {
	for _, f := range families {
		for _, active := range []string{"soft", "rxe"} {
			t.Run(f.name+"/"+active, func(t *testing.T) {
				a, b := cmPrograms(t, f, 7)
				server := netip.AddrPortFrom(f.rxe, 7482)
				if active == "rxe" {
					a, b, server = b, a, netip.AddrPortFrom(f.softAddr(7), 7482)
				}
				staleOver(t, a, b, server, active == "rxe" && f == families[0])
			})
		}
	}
}

func staleOver(t *testing.T, a, b *cmEnd, server netip.AddrPort, asks bool) {
	ctx := wait(t)
	l := must.Get(b.ch.Listen(server, 8, rdmacm.Options{}))(t)
	defer l.Close()
	served := make(chan *rdmacm.Request, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = r.Accept(ctx, b.qp, cmParam)
		}
		if err != nil {
			t.Error(err)
		}
		served <- r
	}()
	first := must.Get(a.call(ctx, server, cmParam))(t)
	r := <-served
	require.False(t, t.Failed())

	if asks {
		imposter := must.Get(a.ch.Resolve(ctx, netip.AddrPort{}, server, rdmacm.Options{}))(t)
		soon, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err := imposter.Connect(soon, borrowed(a.qp.Num()), cmParam)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, imposter.Destroy())
		require.NoError(t, r.Context().Err(), "the peer's queue pair lives")
		require.NoError(t, first.Context().Err())
	}

	// The program forgot the connection, and begins anew with the same queue
	// pair.
	require.NoError(t, a.qp.Modify(&verbs.QPAttr{State: abi.QPSReset}, abi.QPMaskState))
	second, err := a.call(ctx, server, cmParam)
	var stale *rdmacm.RejectedError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, abi.UCMRejStaleConn, stale.Reason)
	for _, id := range []*rdmacm.ID{first, r.ID} {
		select {
		case <-id.Context().Done():
		case <-ctx.Done():
			require.FailNow(t, "the stale connection goes on")
		}
	}
	for _, id := range []*rdmacm.ID{first, second, r.ID} {
		require.NoError(t, id.Destroy())
	}
}

// borrowed is the number of another owner's queue pair.
type borrowed uint32

func (b borrowed) Num() uint32                              { return uint32(b) }
func (borrowed) Modify(*verbs.QPAttr, abi.QPAttrMask) error { return nil }
