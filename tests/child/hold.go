package child

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// holds in the environment makes the test binary the process of Hold.
const holds = "RDMASHIM_TEST_HOLDS"

func init() {
	var n int
	var network, name string
	if _, err := fmt.Sscanf(os.Getenv(holds), "%d %s %q", &n, &network, &name); err != nil {
		return
	}
	for range n {
		c, err := net.Dial(network, name)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		defer c.Close()
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// Hold starts a process that dials n times to a UNIX socket, and neither says
// nor reads anything. It goes on until the test ends.
func Hold(t testing.TB, n int, network, name string) {
	t.Helper()
	h := Start(t, holds+"="+strconv.Itoa(n)+" "+network+" "+strconv.Quote(name))
	said, err := h.Out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", said)
}
