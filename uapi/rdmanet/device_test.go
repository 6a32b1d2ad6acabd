package rdmanet

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestDeviceStays: a device without users waits for the next one, unless it has
// ended meanwhile, and is closed when none comes or the program is done.
func TestDeviceStays(t *testing.T) {
	open := func() *device { return must.Get(openToward(t.Context(), "udp4", "127.0.0.1:1"))(t) }
	closed := func(d *device) bool {
		_, err := d.device.QueryDevice()
		return errors.Is(err, net.ErrClosed)
	}
	d := open()
	d.release()
	require.Same(t, d, open())
	closeIdle(nil)
	require.False(t, closed(d), "it has a user")

	d.release()
	require.NoError(t, d.device.Close())
	ended := d
	d = open()
	require.NotSame(t, ended, d)

	d.release()
	closeIdle(nil)
	require.True(t, closed(d))
	d = open()
	d.release()
	require.Eventually(t, func() bool { return closed(d) }, time.Minute, time.Millisecond)
}
