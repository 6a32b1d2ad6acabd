package uapi_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// A READ or atomic to a peer that answers none is refused with that reason,
// however the queue pair was connected, and the connection stays.
func TestPeerAnswersNoReads(t *testing.T) {
	const none = -1
	for name, connect := range map[string]func(t *testing.T, a, b *uapi.Device) (mine, theirs uapi.QP){
		"endpoints": func(t *testing.T, a, b *uapi.Device) (uapi.QP, uapi.QP) {
			qa, qb := mustQP(t, a, uapi.QPConfig{SendDepth: 8}), mustQP(t, b, uapi.QPConfig{SendDepth: 8, MaxRdAtomic: none})
			connectPair(t, a, qa, b, qb)
			return qa, qb
		},
		"addresses": func(t *testing.T, a, b *uapi.Device) (uapi.QP, uapi.QP) {
			l := must.Get(b.Listen(":0", uapi.ListenConfig{}))(t)
			t.Cleanup(func() { l.Close() })
			accepted := make(chan uapi.QP, 1)
			go func() {
				defer close(accepted)
				r, err := l.Accept(t.Context())
				if err == nil {
					_, err = r.CreateQPWith(uapi.QPConfig{SendDepth: 8, MaxRdAtomic: none})
				}
				if err == nil {
					var q uapi.QP
					if q, err = r.Accept(t.Context(), nil); err == nil {
						accepted <- q
					}
				}
				if err != nil {
					t.Error(err)
				}
			}()
			qa := must.Get(a.Dial(t.Context(), l.Addr().String(), uapi.DialConfig{QPConfig: uapi.QPConfig{SendDepth: 8}}))(t)
			qb, ok := <-accepted
			require.True(t, ok)
			t.Cleanup(func() { a.DestroyQP(qa); b.DestroyQP(qb) })
			return qa, qb
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := uapitest.Pair(t, "")
			qa, qb := connect(t, a, b)
			for _, side := range []struct {
				at     *uapi.Device
				qp     uapi.QP
				reason string
			}{
				{a, qa, "the peer answers none: it offered no resources for READs and atomics"},
				{b, qb, "its QPConfig has MaxRdAtomic -1"},
			} {
				mem := must.Get(uapi.Alloc(64))(t)
				mr := must.Get(side.at.RegMR(mem, uapitest.AllAccess))(t)
				sge := []uapi.SGE{{MR: mr, Length: 8}}
				for _, op := range []uapi.Op{uapi.OpRead, uapi.OpFetchAdd, uapi.OpCompareSwap} {
					n, err := side.at.Post(side.qp, []uapi.WR{{Op: uapi.OpWrite, Flags: uapi.Signaled}, {Op: op, Flags: uapi.Signaled, SGE: sge}})
					require.Equal(t, 1, n)
					require.ErrorIs(t, err, syscall.EINVAL)
					require.ErrorContains(t, err, side.reason)
					require.ErrorContains(t, err, op.String())
					var wc [1]uapi.WC
					must.Get(side.at.WaitCQ(t.Context(), side.qp, wc[:]))(t)
					require.NoError(t, wc[0].Err(), "the connection stays")
				}
				require.NoError(t, side.at.DeregMR(mr))
				require.NoError(t, uapi.Free(mem))
			}
		})
	}
}
