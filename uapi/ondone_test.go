package uapi

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// OnDone calls each function once, with the cause, however the connection ends,
// and may be called from it. It does not call one that was taken back.
func TestOnDone(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(j *joined) error
		want error // of b's end
	}{
		"the peer disconnects": {func(j *joined) error { return j.a.Disconnect(j.qa) }, ErrPeerDisconnected},
		"own Disconnect":       {func(j *joined) error { return j.b.Disconnect(j.qb) }, ErrDisconnected},
		"DestroyQP":            {func(j *joined) error { return j.b.DestroyQP(j.qb) }, net.ErrClosed},
		"Close":                {func(j *joined) error { return j.b.Close() }, net.ErrClosed},
		"the peer closes":      {func(j *joined) error { return j.a.Close() }, ErrPeerDisconnected},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := twoDevices(t, "")
				l := must.Get(b.Listen(":0", ListenConfig{}))(t)
				j := join(t, a, b, l, DialConfig{})
				require.NoError(t, l.Close())
				causes := make(chan error, 10)
				told := func(cause error) {
					b.OnDone(j.qb, func(error) {}) // no lock is held
					b.Cause(j.qb)
					causes <- cause
				}
				stop := must.Get(b.OnDone(j.qb, told))(t)
				must.Get(b.OnDone(j.qb, told))(t)
				taken := must.Get(b.OnDone(j.qb, func(error) { t.Error("called") }))(t)
				require.True(t, taken())
				synctest.Wait()
				require.Empty(t, causes, "it stands")
				require.NoError(t, c.end(&j))
				time.Sleep(time.Minute) // in the bubble
				want := []error{<-causes, <-causes}
				for _, err := range want {
					require.ErrorIs(t, err, c.want)
				}
				require.Empty(t, causes, "once")
				require.False(t, stop())

				cause, err := b.Cause(j.qb)
				if err != nil {
					require.NoError(t, cause, "the call's error is no end of a connection")
					require.ErrorIs(t, c.want, net.ErrClosed)
				} else {
					require.Equal(t, c.want, cause)
				}
				_, err = b.OnDone(j.qb, told)
				synctest.Wait()
				if errors.Is(err, syscall.EBADF) {
					require.Empty(t, causes)
				} else {
					require.NoError(t, err)
					require.ErrorIs(t, <-causes, c.want, "of one that has ended")
				}
				a.DestroyQP(j.qa)
				b.DestroyQP(j.qb)
			})
		})
	}
}

func TestOnDoneRefuses(t *testing.T) {
	a, _ := twoDevices(t, "")
	qp := must.Get(a.CreateQP(1, 1))(t)
	never := func(error) { t.Error("called") }
	stop, err := a.OnDone(qp, never)
	require.ErrorIs(t, err, syscall.ENOTCONN)
	require.Nil(t, stop)
	require.NoError(t, a.DestroyQP(qp))
	_, err = a.OnDone(qp, never)
	require.ErrorIs(t, err, syscall.EBADF)
}
