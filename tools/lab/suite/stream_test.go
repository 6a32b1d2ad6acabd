package suite

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// there serves a carrier in this process.
func there(name string) partner {
	return startIn(func(ctx context.Context, announce func(netip.AddrPort) error) error {
		return serveStreams(ctx, name, "", announce)
	})
}

// TestStreams: every work moves something over every carrier, and tells of its
// time and processor time.
func TestStreams(t *testing.T) {
	load := func(context.Context) (float64, error) { return 2000, nil }
	works := map[string]work{
		"moving": moving(65536, 1), "moving many": moving(4096, 3), "exchanging": exchanging(64), "opening": opening,
		"crowding": crowding(64), "offering": offering(64, load),
	}
	for _, name := range []string{"tcp", "rdma", "tcp+tls", "rdma+tls", "tcp+qmux", "rdma+qmux", "quic", "registration soft", "registration soft+tls", "registration tcp+tls", "registration udp"} {
		for title, w := range works {
			t.Run(name+"/"+title, func(t *testing.T) {
				f, err := over(t.Context(), name, "", w, time.Millisecond, there(name))
				require.NoError(t, err)
				require.Positive(t, f.rate)
				require.GreaterOrEqual(t, f.cpu, 0.)
				require.Equal(t, title == "exchanging" || title == "opening" || title == "offering", len(f.times) > 0)
			})
		}
	}
	for _, transport := range []string{"tcp", "rdma"} {
		f, err := over(t.Context(), transport, "", requesting(3), time.Millisecond, there(transport+"+http"))
		require.NoError(t, err)
		require.Positive(t, f.rate)
		f, err = over(t.Context(), transport, "", requestingAt(3, load), time.Millisecond, there(transport+"+http"))
		require.NoError(t, err)
		require.NotEmpty(t, f.times)
		require.NotContains(t, f.times, 0.)
	}
}

// TestLoad: a load that cannot be told fails what it is offered to, and
// arrivals come at its rate.
func TestLoad(t *testing.T) {
	failed := func(context.Context) (float64, error) { return 0, context.Canceled }
	for _, w := range []work{offering(64, failed), requestingAt(3, failed)} {
		_, err := over(t.Context(), "tcp", "", w, time.Millisecond, there("tcp"))
		require.ErrorIs(t, err, context.Canceled)
	}
	due := arrivals(10000, 1000)
	require.InEpsilon(t, 10*time.Second, due[len(due)-1], 0.1)
	require.IsIncreasing(t, due)
}

// TestStreamsAtOnce: none of several streams that are opened at once fails, and
// all do where nobody answers.
func TestStreamsAtOnce(t *testing.T) {
	for _, name := range []string{"tcp", "rdma"} {
		failed, err := failures(t.Context(), name, "", 16, there(name))
		require.NoError(t, err)
		require.Zero(t, failed)
	}
	failed, err := failures(t.Context(), "tcp", "", 3, func(context.Context) (netip.AddrPort, func(), error) {
		return netip.MustParseAddrPort("127.0.0.1:1"), func() {}, nil
	})
	require.NoError(t, err)
	require.Equal(t, 3., failed)
}

// TestStreamsEnd: a measurement ends when it is told to.
func TestStreamsEnd(t *testing.T) {
	for _, name := range []string{"tcp", "rdma"} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		started := make(chan struct{})
		w := moving(65536, 1)
		prepare := w.prepare
		w.prepare = func(ctx context.Context, c *carrier) (func(int, *figures) error, error) {
			do, err := prepare(ctx, c)
			close(started)
			return do, err
		}
		go func() {
			_, err := over(ctx, name, "", w, time.Hour, there(name))
			ended <- err
		}()
		<-started
		cancel()
		require.Error(t, <-ended)
	}
}

// TestAlarm: it is never early, however often it is used.
func TestAlarm(t *testing.T) {
	a := must.Get(newAlarm())(t)
	defer a.close()
	for _, d := range []time.Duration{-time.Second, 0, 1, time.Microsecond, 2 * time.Millisecond, time.Microsecond, time.Millisecond} {
		due := time.Now().Add(d)
		a.sleepUntil(due)
		require.False(t, time.Now().Before(due), d)
	}
}
