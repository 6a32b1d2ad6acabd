package uapi_test

import (
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	info := must.Get(a.QueryDevice())(t)
	for _, n := range []int{0, -1, info.MaxCQE + 1, math.MaxInt32} {
		_, err := a.CreateCQ(n)
		require.ErrorIs(t, err, syscall.EINVAL, "%d entries", n)
	}
	foreign := must.Get(b.CreateCQ(1))(t)
	t.Cleanup(func() { b.DestroyCQ(foreign) })
	for name, config := range map[string]uapi.QPConfig{
		"depth":        {SendDepth: info.MaxDepth + 1},
		"both depths":  {SendDepth: info.MaxCQE, RecvDepth: info.MaxCQE},
		"pieces":       {SendSGE: info.MaxSGE + 1},
		"inline":       {Inline: 1 << 20},
		"timeout":      {Timeout: 8797 * time.Second},
		"old timeout":  {Timeout: 16}, // nanoseconds: IBA's code
		"retry":        {Retry: 8},
		"rnr retry":    {RNRRetry: 8},
		"rnr timer":    {MinRNRTimer: 655361 * time.Microsecond},
		"short timer":  {MinRNRTimer: 9999},
		"rd atomic":    {MaxRdAtomic: 100000},
		"negative":     {Timeout: -2},
		"mtu":          {MTU: 1500},
		"mtu too high": {MTU: 8192},
		"access":       {Access: 1 << 20},
	} {
		_, err := a.CreateQPWith(config)
		require.ErrorIs(t, err, syscall.EINVAL, name)
	}
	_, err := a.CreateQPWith(uapi.QPConfig{SendCQ: foreign})
	require.ErrorIs(t, err, syscall.EBADF)
	_, err = a.CreateQPWith(uapi.QPConfig{RecvCQ: 99999})
	require.ErrorIs(t, err, syscall.EBADF)
	_, err = a.RegMR(make([]byte, 8), 1<<20)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.Empty(t, a.OpenHandles())
}

func TestConnectDefaultsAndNegotiation(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	qa := mustQP(t, a, uapi.QPConfig{})
	qb := mustQP(t, b, uapi.QPConfig{MTU: 512, MaxRdAtomic: 3, Timeout: 40 * time.Millisecond, Retry: uapi.None, RNRRetry: 2, MinRNRTimer: uapi.None})
	connectPair(t, a, qa, b, qb)
	ia := must.Get(a.QueryQP(qa))(t)
	require.Equal(t, []int{512, 6, 7, 3}, []int{ia.MTU, ia.Retry, ia.RNRRetry, ia.MaxRdAtomic})
	require.Equal(t, []time.Duration{268435456, 640 * time.Microsecond}, []time.Duration{ia.Timeout, ia.MinRNRTimer})
	ib := must.Get(b.QueryQP(qb))(t)
	require.Equal(t, []int{512, 0, 2, 3}, []int{ib.MTU, ib.Retry, ib.RNRRetry, ib.MaxRdAtomic})
	require.Equal(t, []time.Duration{67108864, 655360 * time.Microsecond}, []time.Duration{ib.Timeout, ib.MinRNRTimer}, "rounded up")
}

// A request that a queue pair connected to itself refuses has the status that
// any peer's refusal has: earlier requests succeed, later ones are flushed.
func TestRefusedByItself(t *testing.T) {
	t.Parallel()
	type list []uapi.Status
	for name, c := range map[string]struct {
		wr   uapi.WR
		recv uint64 // bytes of the receive that is posted, if any
		want list   // of the receive, and the sends
	}{
		"write": {uapi.WR{Op: uapi.OpWrite, RKey: 12345}, 0, list{uapi.WCSuccess, uapi.WCRemAccessErr, uapi.WCWRFlushErr}},
		"read":  {uapi.WR{Op: uapi.OpRead, RKey: 12345}, 0, list{uapi.WCSuccess, uapi.WCRemAccessErr, uapi.WCWRFlushErr}},
		"SEND that is too long": {uapi.WR{Op: uapi.OpSend}, 4,
			list{uapi.WCSuccess, uapi.WCLocLenErr, uapi.WCRemInvReqErr, uapi.WCWRFlushErr}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
				qp := mustQP(t, a, uapi.QPConfig{SendDepth: 4, RecvDepth: 4})
				connectPair(t, a, qp, a, qp)
				mr, info := mustMR(t, a, make([]byte, 16), uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
				if c.recv > 0 {
					must.Get(a.PostRecv(qp, mr, 0, c.recv))(t)
				}
				sge := []uapi.SGE{{MR: mr, Length: 8}}
				good := uapi.WR{Op: uapi.OpWrite, Flags: uapi.Signaled, SGE: sge, RemoteAddr: info.Addr, RKey: info.RKey}
				bad := c.wr
				bad.SGE, bad.RemoteAddr = sge, info.Addr
				must.Get(a.Post(qp, []uapi.WR{good, bad, good}))(t)
				var got list
				for range c.want {
					got = append(got, next(t, a, qp).Status)
				}
				require.ElementsMatch(t, c.want, got)
				state := must.Get(a.QueryQP(qp))(t)
				require.Equal(t, uapi.StateError, state.State)
			})
		})
	}
}

// A peer of a queue pair whose Access is None may only send.
func TestAccessNone(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	qa := mustQP(t, a, uapi.QPConfig{SendDepth: 2})
	qb := mustQP(t, b, uapi.QPConfig{RecvDepth: 1, Access: uapi.None})
	connectPair(t, a, qa, b, qb)
	here, _ := mustMR(t, a, make([]byte, 8), uapi.AccessLocalWrite)
	there, info := mustMR(t, b, make([]byte, 8), uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
	must.Get(b.PostRecv(qb, there, 0, 8))(t)
	must.Get(a.PostSend(qa, here, 8))(t)
	must.Get(a.PostWrite(qa, here, 0, info.Addr, info.RKey, 8))(t)
	var wc [1]uapi.WC
	for _, want := range []uapi.Status{uapi.WCSuccess, uapi.WCRemInvReqErr} {
		must.Get(a.WaitCQ(t.Context(), qa, wc[:]))(t)
		require.Equal(t, want, wc[0].Status)
	}
}
