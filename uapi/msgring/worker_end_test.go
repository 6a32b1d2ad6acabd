package msgring

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestErrandOfClosedDevice: a worker that finds an errand after its device was
// closed does it, and ends.
func TestErrandOfClosedDevice(t *testing.T) {
	_, device := uapitest.Pair(t, "")
	w, err := NewWorker(device)
	require.NoError(t, err)
	require.NoError(t, device.Close())
	<-w.ended
	done := false
	w.errands = []errand{{w.queues[0], func() { done = true }}}
	w.ended = make(chan struct{})
	w.run()
	require.True(t, done)
	<-w.ended
}
