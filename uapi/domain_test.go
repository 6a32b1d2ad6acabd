package uapi_test

import (
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestAcceptedInDomains: a server gives each client that it accepts a domain,
// and a client that knows the other's key reaches its own memory only.
func TestAcceptedInDomains(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	server, client := uapitest.Pair(t, "")
	at, err := server.QueryDevice()
	require.NoError(t, err)
	l, err := server.Listen(":0")
	require.NoError(t, err)
	defer l.Close()

	var pages [2][]byte
	var infos [2]uapi.MRInfo
	var dialled [2]uapi.QP
	src, _ := mustMR(t, client, make([]byte, 64), uapi.AccessLocalWrite)
	for i := range pages {
		accepted := make(chan error, 1)
		go func() {
			accepted <- func() error {
				r, err := l.Accept(ctx)
				if err != nil {
					return err
				}
				pd, err := r.Context.CreatePD()
				if err != nil {
					return err
				}
				t.Cleanup(func() { require.NoError(t, server.DestroyPD(pd)) })
				pages[i] = []byte("a page of a client's own")
				mr, err := server.RegMRWith(pages[i], uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteWrite | uapi.AccessRemoteRead, PD: pd})
				if err != nil {
					return err
				}
				t.Cleanup(func() { require.NoError(t, server.DeregMR(mr)) })
				if infos[i], err = server.QueryMR(mr); err != nil {
					return err
				}
				qp, err := r.CreateQP(uapi.QPConfig{PD: pd})
				if err != nil {
					return err
				}
				t.Cleanup(func() { require.NoError(t, server.DestroyQP(qp)) })
				_, err = r.Accept(ctx, nil)
				return err
			}()
		}()
		dialled[i], err = client.Dial(ctx, netip.AddrPortFrom(at.Address.Addr(), l.Addr().Port()).String(), uapi.DialConfig{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.DestroyQP(dialled[i])) })
		require.NoError(t, <-accepted)
	}
	for _, write := range []struct {
		to     int
		status uapi.Status
	}{{1, uapi.WCSuccess}, {0, uapi.WCRemAccessErr}} {
		_, err := client.PostWrite(dialled[1], src, 0, infos[write.to].Addr, infos[write.to].RKey, 8)
		require.NoError(t, err)
		require.Equal(t, write.status, next(t, client, dialled[1]).Status)
	}
	require.Equal(t, "a page of a client's own", string(pages[0]))
	_, err = client.PostWrite(dialled[0], src, 0, infos[0].Addr, infos[0].RKey, 8)
	require.NoError(t, err)
	require.Equal(t, uapi.WCSuccess, next(t, client, dialled[0]).Status, "the other client is as it was")
}

// TestDomainHandles: errors name objects, and handles end as others do.
func TestDomainHandles(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	pd, err := a.CreatePD()
	require.NoError(t, err)
	require.Len(t, a.OpenHandles(), 1)
	require.Contains(t, a.OpenHandles()[0], "domain_test.go")
	require.ErrorIs(t, b.DestroyPD(pd), syscall.EBADF)
	mr, err := a.RegMRWith(make([]byte, 8), uapi.MRConfig{PD: pd})
	require.NoError(t, err)
	require.ErrorContains(t, a.DestroyPD(pd), "destroy them first")

	x, _ := uapitest.Connect(t, a, b)
	_, err = x.PostSend(x.QP, mr, 8)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "in one protection domain")

	if err := a.ReRegMR(mr, make([]byte, 16), 0); err == nil {
		info, err := a.QueryMR(mr)
		require.NoError(t, err)
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
