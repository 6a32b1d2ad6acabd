package uapi

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// A goroutine that posts receives, polls, or posts on another queue pair does
// not wait while the kernel is busy with the doorbell of a send.
func TestReceivesDoNotWaitForADoorbell(t *testing.T) {
	rung, free := make(chan struct{}, 1), make(chan struct{})
	gate := gatedKernel{gate: func(call string) error {
		if call == "write" {
			select {
			case rung <- struct{}{}:
			default:
			}
			<-free
		}
		return nil
	}}
	d, err := Open("sim?net=doorbell", OpenConfig{wrap: gate.wrap})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	letGo := sync.OnceFunc(func() { close(free) })
	t.Cleanup(letGo)
	mr := must.Get(d.RegMR(make([]byte, 64), AccessLocalWrite))(t)
	qp := must.Get(d.CreateQP(4, 4))(t)
	self := must.Get(d.LocalEndpoint(qp))(t)
	require.NoError(t, d.ConnectQP(qp, self))

	sent := make(chan error, 1)
	go func() {
		_, err := d.PostSend(qp, mr, 8)
		sent <- err
	}()
	await(t, rung, "the doorbell")
	received := make(chan struct{})
	var id WRID
	go func() {
		defer close(received)
		id, err = d.PostRecv(qp, mr, 32, 8)
		if err == nil {
			_, err = d.PollCQ(qp, make([]WC, 1))
		}
	}()
	await(t, received, "a receive behind the doorbell")
	require.NoError(t, err)
	require.Equal(t, WRID(1), id, "ids count both directions")
	letGo()
	require.NoError(t, <-sent)
}

func await(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not come", what)
	}
}

// An id whose post failed is the next one's.
func TestIDsOfFailedPostsAreUsedAgain(t *testing.T) {
	d := testDevice(t, "sim?net=ids")
	mr := must.Get(d.RegMR(make([]byte, 64), AccessLocalWrite))(t)
	qp := must.Get(d.CreateQP(4, 4))(t)
	_, err := d.LocalEndpoint(qp)
	require.NoError(t, err)
	for i := range 3 {
		_, err = d.PostRecv(qp, mr, 60, 8) // past its end
		require.Error(t, err)
		_, err = d.PostSend(qp, mr, 8) // not connected
		require.Error(t, err)
		id := must.Get(d.PostRecv(qp, mr, 0, 8))(t)
		require.Equal(t, WRID(i), id)
	}
}
