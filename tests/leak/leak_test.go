package leak

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// leaking makes this test binary leak the resource that it names.
const leaking = "RDMASHIM_TEST_LEAK"

func TestMain(m *testing.M) {
	if os.Getenv(leaking) != "" {
		patience = time.Second
	}
	Main(m)
}

var kept any

// TestLeak is the test that the runs below execute.
func TestLeak(t *testing.T) {
	switch os.Getenv(leaking) {
	case "goroutine":
		go func() { select {} }()
	case "descriptor":
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		require.NoError(t, err)
		kept = c
	case "ending":
		done := make(chan struct{})
		go func() { <-done }()
		defer close(done)
	}
}

func TestLeaksAreCaught(t *testing.T) {
	if os.Getenv(leaking) != "" {
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for what, fails := range map[string]bool{"goroutine": true, "descriptor": runtime.GOOS == "linux", "ending": false} {
		cmd := exec.Command(self, "-test.run=^TestLeak$")
		cmd.Env = append(os.Environ(), leaking+"="+what)
		out, err := cmd.CombinedOutput()
		if fails {
			require.Error(t, err, "%s: %s", what, out)
			require.Contains(t, string(out), "left behind")
		} else {
			require.NoError(t, err, "%s: %s", what, out)
		}
	}
}
