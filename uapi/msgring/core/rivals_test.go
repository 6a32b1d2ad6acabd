package core

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The list of all of them is in uapi/rdmanet/rivals_test.go.

// TestRival03CreditBeforeCompletion: the credit of chunks is polled before
// their send completions. There is credit, and no slot: the writer waits for
// the completions, and then goes on.
func TestRival03CreditBeforeCompletion(t *testing.T) {
	e := newTestEnd()
	var signaled []uint64
	sent := uint64(0)
	for e.queue.DataSlot() {
		p := e.put(t, 1)
		if sent++; p.Signal {
			signaled = append(signaled, p.ID)
		}
		require.NoError(t, e.ReceiveControl(control(CREDIT, sent<<10, 0)))
	}
	require.EqualValues(t, MinRing, e.out.Room(), "credit")
	_, n, err := e.Stage(1, true)
	require.NoError(t, err)
	require.Zero(t, n, "a chunk without a slot")
	for range 10 { // messages of the other direction find the slots that are kept for them
		require.True(t, e.queue.ControlSlot())
	}
	require.NotEmpty(t, signaled)
	for _, id := range signaled {
		e.Complete(id)
	}
	for range len(signaled) {
		e.put(t, 1)
	}
}
