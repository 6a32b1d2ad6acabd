package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

const (
	// echoMaxSize is the longest message, in bytes: both ends hold it, so that
	// it can be written whole before any of it is read.
	echoMaxSize = 64 << 10
	// echoBlock is the period of the bytes that are sent. It is odd, so that no
	// buffer holds the same bytes twice.
	echoBlock = 1<<20 + 1
)

// echo is a client's work.
type echo struct {
	count, size int
	bytes       int64
	block       []byte // sent again and again
}

// EchoReport is an echo client's measurements.
type EchoReport struct {
	Network        string  `json:"network"` // rdma or tcp
	Server         string  `json:"server"`
	Count          int     `json:"count"`
	Size           int     `json:"size"`   // bytes of a message
	P50            float64 `json:"p50_us"` // of the round trips
	P99            float64 `json:"p99_us"`
	Bytes          int64   `json:"bytes"` // of the stream, each way
	Seconds        float64 `json:"seconds"`
	BytesPerSecond float64 `json:"bytes_per_second"`
}

func (r *EchoReport) String() string {
	var b strings.Builder
	if r.Count > 0 {
		fmt.Fprintf(&b, "%d round trips of %d B: p50 %.1f µs, p99 %.1f µs\n", r.Count, r.Size, r.P50, r.P99)
	}
	fmt.Fprintf(&b, "%s to %s %s and back in %.2f s: %s/s, every byte right\n", cli.Size(r.Bytes), r.Network, r.Server, r.Seconds, cli.Size(int64(r.BytesPerSecond)))
	return b.String()
}

// prepare checks the wishes and makes the bytes to send, which are input's if
// there is one.
func (e *echo) prepare(input io.Reader) (err error) {
	if e.count < 0 || e.size < 1 || e.size > echoMaxSize || e.bytes < 0 {
		return cli.Usagef("want messages of 1 … %d bytes, and no negative count or bytes", echoMaxSize)
	}
	if input == nil {
		input = io.LimitReader(rand.NewChaCha8([32]byte{}), echoBlock)
	} else {
		defer func() { e.bytes = int64(len(e.block)) }()
	}
	if e.block, err = io.ReadAll(input); err != nil {
		return fmt.Errorf("read what to send: %w", err)
	}
	return nil
}

// run does the work on a connection, which it closes.
func (e *echo) run(ctx context.Context, c stream) (r *EchoReport, err error) {
	stop := context.AfterFunc(ctx, func() { reset(c) })
	defer stop()
	r = &EchoReport{Count: e.count, Size: e.size, Bytes: e.bytes}
	if err = e.messages(c, r); err == nil {
		err = e.stream(c, r)
	}
	if err != nil {
		reset(c)
		return nil, errors.Join(context.Cause(ctx), err)
	}
	return r, c.Close()
}

// messages measures round trips, one after another.
func (e *echo) messages(c stream, r *EchoReport) error {
	took := make([]time.Duration, e.count)
	sent := make([]byte, e.size)
	for i := range took {
		_, _ = io.ReadFull(rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}), sent)
		began := time.Now()
		if _, err := c.Write(sent); err != nil {
			return err
		}
		if err := check(c, &cycle{block: sent}, int64(e.size)); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		took[i] = time.Since(began)
	}
	if slices.Sort(took); e.count > 0 {
		r.P50 = float64(took[e.count/2].Nanoseconds()) / 1e3
		r.P99 = float64(took[e.count*99/100].Nanoseconds()) / 1e3
	}
	return nil
}

// stream sends the stream and reads it at the same time, until its end has come
// back.
func (e *echo) stream(c stream, r *EchoReport) error {
	began := time.Now()
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyN(c, &cycle{block: e.block}, e.bytes)
		if err == nil {
			err = c.CloseWrite()
		}
		sent <- err
	}()
	if err := check(c, &cycle{block: e.block}, e.bytes); err != nil {
		return err
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		return fmt.Errorf("behind %d bytes there comes no end of data, but %d bytes more: %v", e.bytes, n, err)
	}
	r.Seconds = time.Since(began).Seconds()
	r.BytesPerSecond = float64(e.bytes) / r.Seconds
	return <-sent
}

// check reads n bytes of c and compares them with those of want.
func check(c io.Reader, want io.Reader, n int64) error {
	got, sent := make([]byte, min(n, echoMaxSize)), make([]byte, min(n, echoMaxSize))
	for at := int64(0); at < n; {
		k, err := c.Read(got[:min(n-at, echoMaxSize)])
		if err != nil {
			return fmt.Errorf("byte %d did not come back: %w", at, err)
		}
		_, _ = io.ReadFull(want, sent[:k])
		if !bytes.Equal(sent[:k], got[:k]) {
			i := 0
			for sent[i] == got[i] {
				i++
			}
			return fmt.Errorf("byte %d came back as %#x, not as %#x", at+int64(i), got[i], sent[i])
		}
		at += int64(k)
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
