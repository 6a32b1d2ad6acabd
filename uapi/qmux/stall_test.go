package qmux_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// pieces is a pipe that takes several slices at once, as TCP does. What it is
// about to send is told to begun.
type pieces struct {
	net.Conn
	begun chan struct{}
}

func (p pieces) Write(b []byte) (int, error) {
	select {
	case p.begun <- struct{}{}:
	default:
	}
	return p.Conn.Write(b)
}

func (p pieces) WriteBuffers(b *net.Buffers) (total int64, err error) {
	for len(*b) > 0 && err == nil {
		var n int
		n, err = p.Write((*b)[0])
		total += int64(n)
		if (*b)[0] = (*b)[0][n:]; len((*b)[0]) == 0 {
			*b = (*b)[1:]
		}
	}
	return total, err
}

// valve is a connection that brings nothing more while shut is locked.
type valve struct {
	net.Conn
	shut  *sync.Mutex
	reads *int // guarded by shut
}

func (v valve) Read(p []byte) (int, error) {
	v.shut.Lock()
	*v.reads++
	v.shut.Unlock()
	return v.Conn.Read(p)
}

// TestWriteEndsWhileTheByteStreamIsFull: a Write whose bytes the byte stream
// does not take ends by its deadline, by a cancel and by the connection's end.
// The memory is the program's again then, and what counts as written arrives.
func TestWriteEndsWhileTheByteStreamIsFull(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(c *qmux.Conn, s *qmux.SendStream)
		err  error
	}{
		{"deadline", func(_ *qmux.Conn, s *qmux.SendStream) { s.SetWriteDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		{"cancel", func(_ *qmux.Conn, s *qmux.SendStream) { s.CancelWrite(7) },
			&qmux.StreamError{StreamID: 2, ErrorCode: 7}},
		{"close", func(c *qmux.Conn, _ *qmux.SendStream) { go c.CloseWithError(9, "") },
			&qmux.ApplicationError{ErrorCode: 9}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x, y := net.Pipe()
			begun, full := make(chan struct{}, 1), valve{y, new(sync.Mutex), new(int)}
			a, b := both(t, pieces{x, begun}, full, nil)
			s, err := a.OpenUniStreamSync(soon(t))
			require.NoError(t, err)
			_, err = s.Write([]byte("first"))
			require.NoError(t, err)
			r, err := b.AcceptUniStream(soon(t))
			require.NoError(t, err)
			_, err = io.ReadFull(r, make([]byte, 5))
			require.NoError(t, err)
			full.shut.Lock()
			data := make([]byte, 1<<20)
			for i := range data {
				data[i] = byte(i * 31 >> 4)
			}
			lent := bytes.Clone(data)
			select {
			case <-begun:
			default:
			}
			type result struct {
				n   int
				err error
			}
			written := make(chan result, 1)
			go func() {
				n, err := s.Write(lent)
				written <- result{n, err}
			}()
			<-begun
			row.end(a, s)
			w := <-written
			require.ErrorIs(t, w.err, row.err)
			require.Less(t, w.n, len(data))
			clear(lent)
			full.shut.Unlock()
			if row.name != "deadline" {
				return
			}
			require.NoError(t, s.SetWriteDeadline(time.Time{}))
			rest := make(chan error, 1)
			go func() {
				_, err := s.Write(data[w.n:])
				s.Close()
				rest <- err
			}()
			got, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, <-rest)
			require.True(t, bytes.Equal(data, got))
		})
	}
}
