package uapi_test

import (
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestDomainHandles: errors name objects, and handles end as others do.
func TestDomainHandles(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	pd := must.Get(a.CreatePD())(t)
	require.Len(t, a.OpenHandles(), 1)
	require.Contains(t, a.OpenHandles()[0], "domain_test.go")
	require.ErrorIs(t, b.DestroyPD(pd), syscall.EBADF)
	mr := must.Get(a.RegMRWith(make([]byte, 8), uapi.MRConfig{PD: pd}))(t)
	require.ErrorContains(t, a.DestroyPD(pd), "destroy them first")

	x, _ := uapitest.Connect(t, a, b)
	_, err := x.PostSend(x.QP, mr, 8)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "in one protection domain")

	if err := a.ReRegMR(mr, make([]byte, 16), 0); err == nil {
		info := must.Get(a.QueryMR(mr))(t)
		require.Equal(t, pd, info.PD, "it stays where it is")
	}
	require.NoError(t, a.DeregMR(mr))

	// Of several goroutines that destroy it at once one succeeds. An object
	// that is made meanwhile is in it, or is refused.
	errs, made := make([]error, 4), make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = a.DestroyPD(pd) })
		wg.Go(func() {
			var mr uapi.MR
			if mr, made[i] = a.RegMRWith(make([]byte, 8), uapi.MRConfig{PD: pd}); made[i] == nil {
				made[i] = a.DeregMR(mr)
			}
		})
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
		} else {
			require.True(t, errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.EBUSY), "%v", err)
		}
		require.True(t, made[i] == nil || errors.Is(made[i], syscall.EBADF), "%v", made[i])
	}
	require.LessOrEqual(t, won, 1)
	if won == 0 {
		require.NoError(t, a.DestroyPD(pd))
	}
	require.ErrorIs(t, a.DestroyPD(pd), syscall.EBADF)
}
