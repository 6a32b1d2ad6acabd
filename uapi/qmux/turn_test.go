package qmux_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// echo answers the streams of a connection.
func echo(t testing.TB, c *qmux.Conn) {
	var all sync.WaitGroup
	all.Go(func() {
		for {
			s, err := c.AcceptStream(context.Background())
			if err != nil {
				return
			}
			all.Go(func() {
				_, _ = io.Copy(s, struct{ io.Reader }{s})
				s.Close()
			})
		}
	})
	t.Cleanup(func() {
		c.CloseWithError(0, "")
		all.Wait()
	})
}

// leading returns a connection, and a stream of it that is echoed, of which a
// Read that waits reads the byte stream. The channel has what that returns.
func leading(t *testing.T, a *qmux.Conn) (*qmux.Stream, <-chan error) {
	s, err := a.OpenStreamSync(soon(t))
	require.NoError(t, err)
	read := func() error {
		_, err := io.ReadFull(s, make([]byte, 3))
		return err
	}
	ended := make(chan error, 1)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		for range 20 {
			must.Get(s.Write([]byte("abc")))(t)
			require.NoError(t, read())
		}
		go func() { ended <- read() }()
		for range 10_000 {
			if s.Leads() {
				return s, ended
			}
			runtime.Gosched() // until the Read waits, if it may lead
		}
		must.Get(s.Write([]byte("abc")))(t)
		require.NoError(t, <-ended)
	}
	t.Fatal("no Read had the turn")
	return nil, nil
}

// TestReadsLead: where one Read waits after another, it reads the byte stream
// by itself; and it ends by all that ends a Read. The connection goes on behind
// it, though no call waits.
func TestReadsLead(t *testing.T) {
	for _, way := range transports {
		t.Run(way.name, func(t *testing.T) {
			x, y := way.connect(t)
			a, b := both(t, x, y, nil)
			echo(t, b)

			s, ended := leading(t, a)
			s.SetReadDeadline(time.Now())
			require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
			s.SetReadDeadline(time.Time{})
			_, err := s.Write([]byte("abc"))
			require.NoError(t, err)
			_, err = io.ReadFull(s, make([]byte, 3))
			require.NoError(t, err, "the stream goes on")

			s, ended = leading(t, a)
			s.CancelRead(5)
			var cancelled *qmux.StreamError
			require.ErrorAs(t, <-ended, &cancelled)

			_, ended = leading(t, a)
			other := must.Get(a.OpenStreamSync(soon(t)))(t)
			must.Get(other.Write([]byte("others")))(t)
			_, err = io.ReadFull(other, make([]byte, 6))
			require.NoError(t, err, "the one that leads serves the others")

			b.CloseWithError(3, "enough")
			var closed *qmux.ApplicationError
			require.ErrorAs(t, <-ended, &closed)
			<-a.Context().Done()
		})
	}
}

// TestDeadlineOfTheLead: a deadline that passes while the Read that leads has
// read, and has not locked the core, ends that Read.
func TestDeadlineOfTheLead(t *testing.T) {
	x, y := net.Pipe()
	a, b := both(t, x, y, nil)
	echo(t, b)
	for range 20 {
		s, ended := leading(t, a)
		s.ExpireRead(func() {
			go y.Write(nil) // a Read of the pipe brings nothing
			for range 1000 {
				runtime.Gosched()
			}
		})
		require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
	}
}

// TestTheReaderTakesOver: when the Read that led is gone, and no call waits,
// the connection hears its peer all the same; and a close ends a Read that
// leads.
func TestTheReaderTakesOver(t *testing.T) {
	for _, way := range transports {
		t.Run(way.name, func(t *testing.T) {
			x, y := way.connect(t)
			a, b := both(t, x, y, nil)
			echo(t, b)
			s, ended := leading(t, a)
			must.Get(s.Write([]byte("abc")))(t)
			require.NoError(t, <-ended)
			b.CloseWithError(3, "enough")
			<-a.Context().Done()

			x, y = way.connect(t)
			a, b = both(t, x, y, nil)
			echo(t, b)
			_, ended = leading(t, a)
			a.CloseWithError(4, "")
			require.ErrorIs(t, <-ended, &qmux.ApplicationError{ErrorCode: 4})
		})
	}
}

// TestTurnsAtRandom moves random pieces over streams that come and go, each
// with goroutines of its own, short deadlines and pauses: the turns to read and
// to write change all the time, and every byte arrives, though the program uses
// the memory of a Write again at once.
func TestTurnsAtRandom(t *testing.T) {
	ways := append(slices.Clip(transports), transport{"lent", func(testing.TB) (net.Conn, net.Conn) {
		x, y := net.Pipe() // the peer reads the memory that is lent
		return pieces{x, func([]byte) {}}, pieces{y, func([]byte) {}}
	}})
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			x, y := way.connect(t)
			a, b := both(t, x, y, &qmux.Config{InitialStreamReceiveWindow: 20_000, MaxStreamReceiveWindow: 20_000})
			echo(t, b)
			errs := make(chan error, 4)
			for i := range cap(errs) {
				go func() { errs <- converse(a, rand.New(rand.NewPCG(7, uint64(i)))) }()
			}
			for range cap(errs) {
				require.NoError(t, <-errs)
			}
		})
	}
}

// converse sends random data over streams and compares what comes back.
func converse(c *qmux.Conn, r *rand.Rand) error {
	for range 2 {
		s, err := c.OpenStreamSync(context.Background())
		if err != nil {
			return err
		}
		data := make([]byte, r.IntN(60_000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		sizes := make([]int, 64)
		for i := range sizes {
			sizes[i] = 1 + r.IntN(1<<(4+r.IntN(12)))
		}
		sent := make(chan error, 1)
		go func() {
			rest, size, own := data, 0, make([]byte, 1<<15)
			for len(rest) > 0 {
				p := own[:copy(own, rest[:min(len(rest), sizes[size%64])])]
				n, err := s.Write(p)
				clear(p) // Write is done with it
				if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					sent <- err
					return
				}
				s.SetWriteDeadline(time.Time{})
				if rest = rest[n:]; size%5 == 0 {
					s.SetWriteDeadline(time.Now().Add(time.Duration(size) * 10 * time.Microsecond))
				}
				size++
			}
			s.SetWriteDeadline(time.Time{})
			sent <- s.Close()
		}()
		var got []byte
		p := make([]byte, 1<<16)
		for i := 0; err == nil; i++ {
			if i%7 == 0 {
				s.SetReadDeadline(time.Now().Add(time.Duration(i%50) * 10 * time.Microsecond))
			}
			var n int
			n, err = s.Read(p[:sizes[i%64]])
			got = append(got, p[:n]...)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = s.SetReadDeadline(time.Time{})
			}
		}
		if err != io.EOF {
			return err
		}
		if err := <-sent; err != nil {
			return err
		}
		if !bytes.Equal(data, got) {
			return fmt.Errorf("%d bytes came back of %d, or others", len(got), len(data))
		}
	}
	return nil
}
