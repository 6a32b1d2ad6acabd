package uapitest_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// fakeT is a test that keeps its messages.
type fakeT struct {
	mu       sync.Mutex
	errors   []string
	log      []string
	cleanups []func()
}

type fatal struct{}

func (f *fakeT) Helper()           {}
func (f *fakeT) Cleanup(f2 func()) { f.cleanups = append(f.cleanups, f2) }

func (f *fakeT) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeT) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *fakeT) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(fatal{})
}

// run runs a test as testing does: cleanups last in, first out.
func (f *fakeT) run(test func(t uapitest.T)) []string {
	protect := func(g func()) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(fatal); !ok {
					panic(r)
				}
			}
		}()
		g()
	}
	protect(func() { test(f) })
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		protect(f.cleanups[i])
	}
	return f.errors
}

func TestCleanTestsPass(t *testing.T) {
	t.Parallel()
	require.Empty(t, new(fakeT).run(func(t uapitest.T) {
		a, b := uapitest.Pair(t, "")
		uapitest.Connect(t, a, b)
	}))
	require.Empty(t, new(fakeT).run(func(t uapitest.T) {
		a, b := uapitest.Pair(t, "")
		x, _ := uapitest.Connect(t, a, b)
		x.DestroyQP(x.QP)
		x.DeregMR(x.MR)
		b.Close() // a device that the test closed itself is no error
	}))
}

// TestForgottenReceiveIsLogged, and nothing of a test without a mistake is, nor
// after its end.
func TestForgottenReceiveIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fakeT
		f.run(func(t uapitest.T) {
			a, b := uapitest.Pair(t, "")
			x, y := uapitest.Connect(t, a, b)
			x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 5))
			x.Next(1)
			f.log = append(f.log, "the mistake")
			x.Must(x.PostSend(x.QP, x.MR, 5))
			time.Sleep(2 * time.Second) // of the bubble
			_ = y
		})
		require.Len(t, f.log, 2)
		require.Equal(t, "the mistake", f.log[0])
		require.Contains(t, f.log[1], "a message waits for a receive: the peer has none posted")
	})
}

func TestLeakedHandlesFail(t *testing.T) {
	t.Parallel()
	errs := new(fakeT).run(func(t uapitest.T) {
		a, _ := uapitest.Pair(t, "")
		a.RegMR(make([]byte, 123), 0)
		a.CreateQP(1, 1)
	})
	require.Len(t, errs, 2)
	require.Contains(t, errs[0], "123 bytes")
	require.Contains(t, errs[0], "pair_test.go:")
	require.Contains(t, errs[1], "qp ")
}

func TestLeakedDeviceFails(t *testing.T) {
	// In a bubble, because the helper is patient with goroutines that end late.
	synctest.Test(t, func(t *testing.T) {
		var leaked *uapi.Device
		errs := new(fakeT).run(func(t uapitest.T) {
			a, _ := uapitest.Pair(t, "")
			info, err := a.QueryDevice()
			if err != nil {
				t.Fatalf("%v", err)
			}
			// A second Device of it keeps its goroutines running.
			leaked, _ = uapi.Open(info.Device, uapi.OpenConfig{})
		})
		require.NoError(t, leaked.Close())
		require.Len(t, errs, 2)
		require.Contains(t, errs[0], "goroutines")
		require.Contains(t, errs[1], "still runs")
	})
}

func TestBadOptionsFail(t *testing.T) {
	t.Parallel()
	errs := new(fakeT).run(func(t uapitest.T) { uapitest.Pair(t, "los=1%") })
	require.Len(t, errs, 1)
	require.Contains(t, errs[0], "unknown option")
}

// TestFailedCompletionFails, with its error, unless the test asked for it
// unchecked.
func TestFailedCompletionFails(t *testing.T) {
	t.Parallel()
	var failed uapi.Status
	errs := new(fakeT).run(func(t uapitest.T) {
		a, b := uapitest.Pair(t, "")
		x, _ := uapitest.Connect(t, a, b)
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey^1, 1))
		failed = x.NextUnchecked(1)[0].Status
		x, y := uapitest.Connect(t, a, b)
		y.Must(y.PostRecv(y.QP, y.MR, 0, 1))
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		x.Must(x.PostSend(x.QP, x.MR, 2)) // a byte too long
		x.Next(2)
	})
	require.Equal(t, uapi.WCRemAccessErr, failed)
	require.Len(t, errs, 1)
	require.Regexp(t, "completion 2 of 2: .*REM_INV_REQ_ERR", errs[0])
}

func TestMistakesOfConnectFail(t *testing.T) {
	t.Parallel()
	errs := new(fakeT).run(func(t uapitest.T) {
		a, b := uapitest.Pair(t, "")
		uapitest.ConnectWith(t, a, b, uapi.QPConfig{}, 0)
	})
	require.Len(t, errs, 1)
	errs = new(fakeT).run(func(t uapitest.T) {
		a, b := uapitest.Pair(t, "")
		x, _ := uapitest.Connect(t, a, b)
		x.Must(x.PostSend(0, 0, 0))
	})
	require.Len(t, errs, 1)
	require.Contains(t, errs[0], "bad file descriptor")
}
