package conform

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/shm"
)

// emulatorShared is two soft RNICs that reach each other by shared memory.
func emulatorShared(t testing.TB) *system {
	return emulatorSockets(t, "emulator+shm", "shm=on", func(l link.Link) (link.Link, error) {
		return shm.Wrap(l, shm.Options{})
	})
}

// TestEmulatorShared runs the tests whose packets the link carries: the others
// cannot see which link it is.
func TestEmulatorShared(t *testing.T) {
	if testing.Short() {
		t.Skip("over UDP and the in-memory network only")
	}
	sys := emulatorShared(t)
	runSuite(t, sys, slices.Concat(stateTests, dataTests, errorTests, eventTests, uapiTests, uapiSharedTests, uapiWaitTests,
		changeTests, sharedTests, unreliableTests, windowTests, cmTests, cmConnectionTests))
	require.Greater(t, sys.counter("shm_rcvd_pkts"), uint64(1000), "packets took the rings")
}

func TestProgramsOnShared(t *testing.T) {
	if testing.Short() {
		t.Skip("over UDP and the in-memory network only")
	}
	comparePrograms(t, emulatorSim(t), emulatorShared(t))
}
