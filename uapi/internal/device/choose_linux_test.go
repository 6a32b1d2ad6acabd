package device

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// TestNameIsTaken: an owner whose name another one has that ends gets it within
// the time for which others wait for the owner's port mapper.
func TestNameIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &portMapper{name: portMapperName(netip.MustParseAddr("127.99.98.96")), log: slog.New(slog.DiscardHandler), closed: make(chan struct{})}
		listen := func() chan *net.UnixListener {
			l := make(chan *net.UnixListener, 1)
			go func() { l <- d.listenLater(nil, syscall.EADDRINUSE) }()
			synctest.Wait() // it does, for the name is taken
			return l
		}
		began, other := time.Now(), must.Get(net.ListenUnix("unix", d.name))(t)
		l := listen()
		require.NoError(t, other.Close())
		require.NoError(t, (<-l).Close())
		require.Less(t, time.Since(began), ownerPatience, "of virtual time")

		other = must.Get(net.ListenUnix("unix", d.name))(t)
		l = listen()
		close(d.closed)
		require.Nil(t, <-l)
		require.NoError(t, other.Close())
	})
}

// TestOwnerEnds: the port of an address is had as soon as an owner has ended
// that takes no other process in any more, and is not waited for when it stays.
func TestOwnerEnds(t *testing.T) {
	for _, taken := range []int{0, 1, 20, 1e9} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			o := Chooser[int]{Open: func(way Way) (int, error) {
				require.Equal(t, "soft:127.99.98.97", way.Label)
				if tries++; tries <= taken {
					return 0, errs.Explain(syscall.EADDRINUSE, "no port mapper")
				}
				return 7, nil
			}}
			c, err := o.softAt(softSpec(netip.MustParseAddr("127.99.98.97")))
			if taken < 1e9 {
				require.NoError(t, err)
				require.Equal(t, 7, c)
				require.Equal(t, taken+1, tries)
				return
			}
			require.True(t, errors.Is(err, syscall.EADDRINUSE), "%v", err)
		})
	}
}
