package qmux_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// pieces is a pipe that takes several slices at once, as TCP does. before sees
// each that it is about to send.
type pieces struct {
	net.Conn
	before func([]byte)
}

func (p pieces) Write(b []byte) (int, error) {
	p.before(b)
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
// does not take ends by its deadline, by a cancel and by the connection's end,
// whether it sends them, the Write of another stream or the writer. The memory
// is the program's again then, and what counts as written arrives.
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
		for _, sender := range []string{"itself", "another", "the writer"} {
			t.Run(row.name+"/"+sender, func(t *testing.T) { endFull(t, sender, row.end, row.err) })
		}
	}
}

func endFull(t *testing.T, sender string, end func(*qmux.Conn, *qmux.SendStream), cause error) {
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i * 31 >> 4)
	}
	lent := bytes.Clone(data)
	x, y := net.Pipe()
	full := valve{y, new(sync.Mutex), new(int)}
	begun, lending := make(chan struct{}, 1), make(chan struct{})
	var once sync.Once
	a, b := both(t, pieces{x, func(p []byte) {
		select {
		case begun <- struct{}{}:
		default:
		}
		if sender != "itself" && within(p, lent) {
			once.Do(func() {
				full.shut.Lock()
				close(lending)
			})
		}
	}}, full, nil)
	s, r := greeted(t, a, b)
	o, rest := greeted(t, a, b)
	full.shut.Lock()
	select {
	case <-begun:
	default:
	}
	if sender != "itself" {
		go o.Write(make([]byte, 1<<20))
		go io.Copy(io.Discard, rest)
		<-begun
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
	if sender == "itself" {
		<-begun
	} else {
		for s.Unsent() == 0 {
			runtime.Gosched()
		}
		if sender == "the writer" {
			o.SetWriteDeadline(time.Now())
		}
		full.shut.Unlock()
		select {
		case <-lending:
		case w := <-written:
			t.Fatal("no memory was lent; the Write ended: ", w.n, w.err)
		}
	}
	end(a, s)
	w := <-written
	require.ErrorIs(t, w.err, cause)
	require.Less(t, w.n, len(data))
	clear(lent)
	full.shut.Unlock()
	if cause != os.ErrDeadlineExceeded {
		return
	}
	require.NoError(t, s.SetWriteDeadline(time.Time{}))
	again := make(chan error, 1)
	go func() {
		_, err := s.Write(data[w.n:])
		s.Close()
		again <- err
	}()
	got := must.Get(io.ReadAll(r))(t)
	require.NoError(t, <-again)
	require.True(t, bytes.Equal(data, got))
}

// within says whether p lies in the memory of all. What is before it may have
// been copied, into a record that another stream's bytes end.
func within(p, all []byte) bool {
	for i := range all {
		if &all[i] == &p[0] {
			return true
		}
	}
	return false
}

// greeted opens a stream of a, of which b has read a first word.
func greeted(t *testing.T, a, b *qmux.Conn) (*qmux.SendStream, *qmux.ReceiveStream) {
	s := must.Get(a.OpenUniStreamSync(soon(t)))(t)
	must.Get(s.Write([]byte("first")))(t)
	r := must.Get(b.AcceptUniStream(soon(t)))(t)
	must.Get(io.ReadFull(r, make([]byte, 5)))(t)
	return s, r
}

// stubborn is pieces that an interrupt does not end: they send all, and say
// then that it was too late.
type stubborn struct {
	pieces
	late *atomic.Bool
}

func (c stubborn) SetWriteDeadline(at time.Time) error {
	c.late.Store(!at.IsZero())
	return nil
}

func (c stubborn) WriteBuffers(b *net.Buffers) (int64, error) {
	n, err := c.pieces.WriteBuffers(b)
	if err == nil && c.late.Load() {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// TestInterruptInVain: an interrupt of the writer that comes behind all bytes
// is no error of the byte stream.
func TestInterruptInVain(t *testing.T) {
	x, y := net.Pipe()
	data := bytes.Repeat([]byte("abcdefgh"), 1<<10)
	begun, waits, lending, late := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	a, b := both(t, stubborn{pieces{x, func(p []byte) {
		switch {
		case &p[0] == &data[0]:
			close(lending)
			<-late
		case len(p) > 1000: // the datagram
			close(begun)
			<-waits
		}
	}}, new(atomic.Bool)}, y, &qmux.Config{EnableDatagrams: true})
	s, r := greeted(t, a, b)
	require.NoError(t, a.SendDatagram(make([]byte, 1000))) // by the writer
	<-begun
	written := make(chan error, 1)
	go func() {
		_, err := s.Write(data)
		written <- err
	}()
	for s.Unsent() == 0 {
		runtime.Gosched()
	}
	close(waits)
	<-lending
	s.SetWriteDeadline(time.Now())
	close(late)
	require.NoError(t, <-written)
	require.NoError(t, s.Close())
	got := must.Get(io.ReadAll(r))(t)
	require.True(t, bytes.Equal(data, got))
}

// scale is pieces that notes the length of each send, which takes a while when
// slow is set.
type scale struct {
	pieces
	mu    *sync.Mutex
	sends *[]int // guarded by mu
	slow  *atomic.Bool
}

func (c scale) WriteBuffers(b *net.Buffers) (int64, error) {
	if c.slow.Load() {
		<-time.After(2 * time.Millisecond)
	}
	n, err := c.pieces.WriteBuffers(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.sends = append(*c.sends, int(n))
	return n, err
}

// TestLongSends: a byte stream that takes records at once gets four times as
// many with a send as one that does not, where others would wait for them.
func TestLongSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := net.Pipe()
		meter := scale{pieces{x, func([]byte) {}}, new(sync.Mutex), new([]int), new(atomic.Bool)}
		a, b := both(t, meter, y, &qmux.Config{InitialStreamReceiveWindow: 8 << 20, InitialConnectionReceiveWindow: 8 << 20})
		s, r := greeted(t, a, b)
		go io.Copy(io.Discard, r)
		const record = 16 << 10
		longest := func() int {
			meter.mu.Lock()
			defer meter.mu.Unlock()
			defer func() { *meter.sends = nil }()
			return slices.Max((*meter.sends)[1:]) // the first is as long as those before it say
		}
		for _, row := range []struct {
			slow bool
			most int
		}{{false, 512 << 10}, {true, 128 << 10}, {false, 512 << 10}} {
			meter.slow.Store(row.slow)
			must.Get(s.Write(make([]byte, 2<<20)))(t)
			n := longest()
			require.GreaterOrEqual(t, n, row.most)
			require.Less(t, n, row.most+record)
		}
	})
}
