//go:build !udpportable

package uapi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDialClosedPort: where no device has the UDP port, the host says so, and
// Dial is refused although ctx has no deadline; whatever stands around the
// device's socket.
func TestDialClosedPort(t *testing.T) {
	pid := os.Getpid()
	addr := func(n int) string { return fmt.Sprintf("127.%d.%d.%d", 33+(pid>>8)%192, pid%256, n) }
	for i, options := range []string{"", "&shm=off", "&delay=1us", "&pcap=" + filepath.Join(t.TempDir(), "refused.pcapng")} {
		t.Run(options, func(t *testing.T) {
			d := testDevice(t, "soft:"+addr(1+i)+"?port=0"+options)
			_, err := d.Dial(context.Background(), addr(200)+":7471", DialConfig{})
			require.ErrorIs(t, err, ErrRefused)
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
			require.NotErrorIs(t, err, ErrUnreachable)
			require.ErrorContains(t, err, fmt.Sprintf("nothing has UDP port %d of that address", d.chosen.addr.Port()))
			require.Empty(t, d.OpenHandles())

			// The device lives: a dial to itself is answered.
			_, err = d.Dial(context.Background(), addr(1+i)+":7471", DialConfig{})
			require.ErrorContains(t, err, "nobody listens there")
		})
	}
}

// TestDialUnreachable: a network that the socket does not reach is an error at
// once.
func TestDialUnreachable(t *testing.T) {
	d := testDevice(t, "soft:127.0.0.1?port=0")
	_, err := d.Dial(context.Background(), "203.0.113.7:7471", DialConfig{})
	require.ErrorIs(t, err, syscall.ENETUNREACH)
	require.ErrorContains(t, err, "soft:ADDRESS")
}

// TestDialSilence: the error of a caller's deadline says what was tried.
func TestDialSilence(t *testing.T) {
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.", 33+(pid>>8)%192, pid%256)
	a := testDevice(t, "soft:"+host+"9?port=0&loss=100%")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := a.Dial(ctx, host+"200:7471", DialConfig{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, ErrUnreachable)
	require.ErrorContains(t, err, "no answer for ")
	require.ErrorContains(t, err, "nothing has UDP port 4791 of that address of this host")
}
