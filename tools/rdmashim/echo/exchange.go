package echo

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

const (
	// maxSize is the longest message, in bytes: both ends hold it, so that it
	// can be written whole before any of it is read.
	maxSize = 64 << 10
	// maxCount bounds messages and datagrams.
	maxCount = 1 << 24
	// blockSize is the period of the bytes that are sent. It is odd, so that no
	// buffer holds the same bytes twice.
	blockSize = 1<<20 + 1
	// atOnce is how many streams are under way at a time: where they are
	// connections, half of the seats that a server has for an address.
	atOnce       = 64
	datagramSize = 1000 // bytes
	datagramsOut = 64   // that are not back
	// datagramPatience is how long a datagram may take: on QUIC the network may
	// lose it, else only a program.
	datagramPatience = 5 * time.Second
)

// Exchange is what a client sends to a server that echoes. Every byte that
// comes back is checked.
type Exchange struct {
	Count     int   `json:"count"` // of messages, one after another
	Size      int   `json:"size"`  // bytes of each
	Streams   int   `json:"streams"`
	Bytes     int64 `json:"bytes"`   // of each
	OneWay    bool  `json:"one_way"` // streams do not come back
	Datagrams int   `json:"datagrams"`

	block []byte // sent again and again
}

// Result is what an exchange measured.
type Result struct {
	P50            float64 `json:"p50_us"` // of the messages' round trips
	P99            float64 `json:"p99_us"`
	Seconds        float64 `json:"seconds"`          // of all streams
	BytesPerSecond float64 `json:"bytes_per_second"` // each way
	DatagramsBack  int     `json:"datagrams_back"`
}

// prepare checks the wishes and makes the bytes to send.
func (e *Exchange) prepare() error {
	if e.Count < 0 || e.Count > maxCount || e.Size < 1 || e.Size > maxSize || e.Streams < 0 || e.Bytes < 0 || e.Datagrams < 0 || e.Datagrams > maxCount {
		return cli.Usagef("want messages and datagrams up to %d, messages of 1 … %d bytes, and no negative number", maxCount, maxSize)
	}
	e.block = make([]byte, blockSize)
	_, _ = rand.NewChaCha8([32]byte{}).Read(e.block)
	return nil
}

// run sends the messages on the first stream, then all streams, up to 64 at
// once, then the datagrams. The error is the first difference.
func (e *Exchange) run(ctx context.Context, s *Session) (r Result, err error) {
	first, err := s.open(ctx)
	if err != nil {
		return r, err
	}
	stop := context.AfterFunc(ctx, func() { cancel(first) })
	defer func() {
		if stop() && err != nil {
			cancel(first)
		} else if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	if err := e.messages(first, &r); err != nil {
		return r, err
	}
	began := time.Now()
	streams, group := errgroup.WithContext(ctx)
	streams.SetLimit(atOnce)
	for i := 0; i < e.Streams && group.Err() == nil; i++ {
		streams.Go(func() error {
			if err := e.stream(group, s, first, i); err != nil {
				return fmt.Errorf("stream %d of %d: %w", i+1, e.Streams, err)
			}
			return nil
		})
	}
	err = streams.Wait()
	if err == nil && (e.OneWay || e.Streams == 0) { // its end comes back behind all that was sent
		err = there(first, e.data(0), e.data(0), 0)
	}
	if err != nil {
		return r, err
	}
	r.Seconds = time.Since(began).Seconds()
	r.BytesPerSecond = float64(e.Bytes) * float64(e.Streams) / r.Seconds
	r.DatagramsBack, err = e.datagrams(ctx, s)
	return r, err
}

// messages measures round trips, one after another.
func (e *Exchange) messages(s Stream, r *Result) error {
	took := make([]time.Duration, e.Count)
	sent := make([]byte, e.Size)
	for i := range took {
		_, _ = io.ReadFull(rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}), sent)
		began := time.Now()
		_, err := s.Write(sent)
		if err == nil {
			err = check(s, &cycle{block: sent}, int64(e.Size))
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		took[i] = time.Since(began)
	}
	if slices.Sort(took); e.Count > 0 {
		r.P50 = float64(took[e.Count/2].Nanoseconds()) / 1e3
		r.P99 = float64(took[e.Count*99/100].Nanoseconds()) / 1e3
	}
	return nil
}

// stream sends the i-th stream, which the first is open for already.
func (e *Exchange) stream(ctx context.Context, s *Session, first Stream, i int) (err error) {
	if e.OneWay {
		w, err := s.openUni(ctx)
		if err != nil {
			return err
		}
		_, err = io.CopyN(w, e.data(i), e.Bytes)
		return errors.Join(err, w.Close())
	}
	if i > 0 {
		if first, err = s.open(ctx); err != nil {
			return err
		}
	}
	defer context.AfterFunc(ctx, func() { cancel(first) })()
	return there(first, e.data(i), e.data(i), e.Bytes)
}

// data gives the bytes of the i-th stream.
func (e *Exchange) data(i int) io.Reader {
	return &cycle{e.block, i * 7919 % blockSize}
}

// there sends n bytes and the end of data, and reads at the same time, until
// the end has come back.
func there(s Stream, data, want io.Reader, n int64) error {
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyN(s, data, n)
		if err == nil {
			err = s.Close()
		}
		sent <- err
	}()
	err := check(s, want, n)
	if err == nil {
		if k, end := s.Read(make([]byte, 1)); k > 0 || end != io.EOF {
			err = fmt.Errorf("behind %d bytes there comes no end of data, but %d bytes more: %v", n, k, end)
		}
	}
	if err != nil {
		cancel(s)
		<-sent
		return err
	}
	if err = <-sent; err == nil {
		leave(s)
	}
	return err
}

// check reads n bytes and compares them with those of want.
func check(r io.Reader, want io.Reader, n int64) error {
	got, sent := make([]byte, min(n, maxSize)), make([]byte, min(n, maxSize))
	for at := int64(0); at < n; {
		k, err := r.Read(got[:min(n-at, maxSize)])
		_, _ = io.ReadFull(want, sent[:k])
		if !bytes.Equal(sent[:k], got[:k]) {
			i := 0
			for sent[i] == got[i] {
				i++
			}
			return fmt.Errorf("byte %d came back as %#x, not as %#x", at+int64(i), got[i], sent[i])
		}
		if at += int64(k); err != nil && at < n {
			return fmt.Errorf("byte %d did not come back: %w", at, err)
		}
	}
	return nil
}

// cycle reads a block again and again.
type cycle struct {
	block []byte
	at    int
}

func (c *cycle) Read(p []byte) (int, error) {
	n := copy(p, c.block[c.at:])
	c.at = (c.at + n) % len(c.block)
	return n, nil
}

// datagrams sends them and counts those that come back, until all have, or no
// other does for a while.
func (e *Exchange) datagrams(ctx context.Context, s *Session) (back int, err error) {
	seen := make([]bool, e.Datagrams)
	for sent := 0; back < len(seen); {
		if sent < len(seen) && sent-back < datagramsOut {
			if err := s.SendDatagram(datagram(sent)); err != nil {
				return back, fmt.Errorf("datagram %d: %w", sent+1, err)
			}
			sent++
			continue
		}
		patient, cancel := context.WithTimeout(ctx, datagramPatience)
		p, err := s.ReceiveDatagram(patient)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return back, nil
		}
		if err != nil {
			return back, fmt.Errorf("datagram %d did not come back: %w", back+1, err)
		}
		i := len(seen)
		if len(p) >= 4 {
			i = int(binary.BigEndian.Uint32(p))
		}
		if i >= sent || seen[i] || !bytes.Equal(p, datagram(i)) {
			return back, fmt.Errorf("of %d datagrams %d came back, then one of %d bytes that was not sent, or twice: %.16x", sent, back, len(p), p)
		}
		seen[i] = true
		back++
	}
	return back, nil
}

// datagram is the i-th: its number, and bytes that follow from it.
func datagram(i int) []byte {
	p := binary.BigEndian.AppendUint32(make([]byte, 0, datagramSize), uint32(i))
	return append(p, bytes.Repeat(p[3:], datagramSize-len(p))...)
}
