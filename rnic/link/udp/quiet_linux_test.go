//go:build linux && !udpportable

package udp

import (
	"net"
	"os"
	"os/signal"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/must"
)

// The netpoller hears of datagrams during a Wait, and the next Wait finds what
// came meanwhile.
func TestQuiet(t *testing.T) {
	a, b := listen(t, loopback4), listen(t, loopback4)
	q := b.(*socket).raw.(*quiet)
	in := make([]link.Packet, 4)
	for i := range 3 {
		require.False(t, q.armed, "round %d", i)
		require.NoError(t, a.Send([]link.Packet{{Peer: b.Caps().Local, Head: head(7, 0)}}))
		require.NoError(t, b.Wait())
		n := must.Get(b.Recv(in))(t)
		require.Equal(t, 1, n)
		n = must.Get(b.Recv(in))(t)
		require.Zero(t, n)
	}
	require.NoError(t, b.Close())
	require.ErrorIs(t, b.Wait(), net.ErrClosed)
	require.Nil(t, q.watch)
}

// A Sleep ends with a datagram, an Interrupt before or while it sleeps, the
// descriptor that Watch named, its time, and Close, and not with a signal.
func TestSleep(t *testing.T) {
	const long = time.Hour
	a, b := listen(t, loopback4), listen(t, loopback4)
	q := b.(*socket).raw.(*quiet)
	in := make([]link.Packet, 4)
	slept := make(chan error)
	sleep := func(d time.Duration) { go func() { slept <- b.Sleep(d, true) }() }
	asleep := func() {
		require.Eventually(t, func() bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.sleeping
		}, time.Minute, time.Microsecond)
	}
	send := func() { require.NoError(t, a.Send([]link.Packet{{Peer: b.Caps().Local, Head: head(7, 0)}})) }
	receive := func() {
		n := must.Get(b.Recv(in))(t)
		require.Equal(t, 1, n)
	}
	for range 3 {
		send()
		require.NoError(t, b.Sleep(long, true))
		receive()
		sleep(long)
		asleep()
		require.False(t, q.armed, "the netpoller does not hear of it")
		send()
		require.NoError(t, <-slept)
		receive()

		b.Interrupt()
		require.NoError(t, b.Sleep(long, true))
		sleep(long)
		asleep()
		b.Interrupt()
		b.Interrupt()
		require.NoError(t, <-slept)

		sleep(long) // the interruptions are over
		asleep()
		send()
		require.NoError(t, <-slept)
		receive()
		require.NoError(t, b.Sleep(time.Nanosecond, true))
	}

	thread, signals := make(chan int), make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGWINCH)
	defer signal.Stop(signals)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		slept <- b.Sleep(long, true)
	}()
	id := <-thread
	for range 100 { // a signal that interrupts it is none of its ends
		asleep()
		require.NoError(t, unix.Tgkill(os.Getpid(), id, unix.SIGWINCH))
		<-signals
	}
	send()
	require.NoError(t, <-slept)
	receive()

	fd := must.Get(unix.Eventfd(0, unix.EFD_CLOEXEC))(t)
	defer unix.Close(fd)
	require.NoError(t, b.(*socket).Watch(fd))
	sleep(long)
	asleep()
	must.Get(unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}))(t)
	require.NoError(t, <-slept)
	require.False(t, readable(uintptr(q.set)), "nor does the netpoller hear of that")
	require.NoError(t, b.Wait(), "but during a Wait")
	must.Get(unix.Read(fd, make([]byte, 8)))(t)

	sleep(long)
	asleep()
	require.NoError(t, b.Close())
	require.NoError(t, <-slept)
	require.ErrorIs(t, b.Sleep(long, true), net.ErrClosed)
}
