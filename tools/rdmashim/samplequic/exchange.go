package samplequic

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/uapi/registration"
)

// exchange is a client's work on every transport.
type exchange struct {
	streams   int
	size      int64 // bytes of each
	datagrams int
}

const datagramSize = 1000 // bytes

// straggling is how long the last datagrams may take behind the streams. Those
// of TCP and RDMA are never as late.
const straggling = 2 * time.Second

// run does it on a connection: it returns how many datagrams came back, and an
// error for the first difference.
func (e *exchange) run(ctx context.Context, c *registration.Conn) (back int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all, grams sync.WaitGroup
	for i := range e.streams {
		all.Go(func() {
			if err := e.stream(ctx, c, i); err != nil {
				cancel(err)
			}
		})
	}
	var here atomic.Int64
	late, stop := context.WithCancel(ctx)
	defer stop()
	grams.Go(func() {
		if err := e.receive(late, c, &here); err != nil {
			cancel(err)
		}
		stop()
	})
	for i := range e.datagrams {
		if err := c.SendDatagram(datagram(i)); err != nil {
			cancel(err)
			break
		}
	}
	all.Wait()
	timer := time.AfterFunc(straggling, stop)
	grams.Wait()
	timer.Stop()
	return here.Load(), context.Cause(ctx)
}

// stream sends bytes there and compares those that come back.
func (e *exchange) stream(ctx context.Context, c *registration.Conn, i int) error {
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		s.CancelRead(0)
		s.CancelWrite(0)
	})()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(s, e.data(i))
		sent <- errors.Join(err, s.Close())
	}()
	err = compare(s, e.data(i))
	if err != nil {
		s.CancelWrite(0)
		return fmt.Errorf("stream %d: %w", s.StreamID(), err)
	}
	return <-sent
}

// data is that of the i-th stream.
func (e *exchange) data(i int) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}), e.size)
}

// compare reads both to their ends.
func compare(got, want io.Reader) error {
	a, b := make([]byte, 32<<10), make([]byte, 32<<10)
	for at := 0; ; {
		n, err := io.ReadFull(got, a)
		m, _ := io.ReadFull(want, b)
		switch {
		case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
			return err
		case n != m:
			return fmt.Errorf("%d bytes came back, not %d", at+n, at+m)
		case !bytes.Equal(a[:n], b[:m]):
			return fmt.Errorf("another byte came back, behind byte %d", at)
		case err != nil:
			return nil
		}
		at += n
	}
}

// datagram is the i-th: its number, and bytes that follow from it.
func datagram(i int) []byte {
	p := binary.BigEndian.AppendUint32(make([]byte, 0, datagramSize), uint32(i))
	return append(p, bytes.Repeat(p[3:4], datagramSize-len(p))...)
}

// receive compares the datagrams that come back until all are here or ctx ends,
// which is no error.
func (e *exchange) receive(ctx context.Context, c *registration.Conn, here *atomic.Int64) error {
	seen := make([]bool, e.datagrams)
	for here.Load() < int64(e.datagrams) {
		p, err := c.ReceiveDatagram(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		i := len(seen)
		if len(p) >= 4 {
			i = int(binary.BigEndian.Uint32(p))
		}
		if i >= len(seen) || seen[i] || !bytes.Equal(p, datagram(i)) {
			return fmt.Errorf("a datagram of %d bytes came that was not sent, or twice", len(p))
		}
		seen[i] = true
		here.Add(1)
	}
	return nil
}

// echo sends back a connection's bytes until it has ended.
func echo(c *registration.Conn) {
	var all sync.WaitGroup
	all.Go(func() {
		for {
			p, err := c.ReceiveDatagram(context.Background())
			if err != nil || c.SendDatagram(p) != nil {
				return
			}
		}
	})
	for {
		s, err := c.AcceptStream(context.Background())
		if err != nil {
			break
		}
		all.Go(func() {
			if _, err := io.Copy(s, s); err != nil {
				s.CancelRead(1)
				s.CancelWrite(1)
				return
			}
			_ = s.Close()
		})
	}
	all.Wait()
}
