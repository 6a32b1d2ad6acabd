package qmux

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

const (
	roundTrips   = 20
	atOnce       = 100  // streams
	datagramSize = 1000 // bytes
	datagramsOut = 64   // datagrams that are not back
	// datagramPatience is how long a datagram may take: it can be dropped, but
	// only by a program.
	datagramPatience = 5 * time.Second
)

// client measures a server that echoes.
type client struct {
	link      link
	streams   int
	size      int64
	oneWay    bool
	datagrams int
	asJSON    bool
}

func (c *client) run(cmd *cobra.Command) (err error) {
	if c.streams < 0 || c.size < 0 || c.datagrams < 0 {
		return cli.Usagef("--streams %d, --size %d, --datagrams %d: none is negative", c.streams, c.size, c.datagrams)
	}
	done, err := c.link.prepare(cmd, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	q, err := c.link.dial(cmd.Context(), &qmux.Config{EnableDatagrams: true})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(cmd.Context(), func() { q.CloseWithError(1, "interrupted") })
	defer stop()
	r := &Report{
		Server: q.RemoteAddr().String(), Network: q.RemoteAddr().Network(), TLS: c.link.secure.config != nil,
		RoundTrips: roundTrips, Streams: c.streams, OneWay: c.oneWay, Datagrams: c.datagrams,
	}
	if err := c.work(q.Conn, r); err != nil {
		q.end(1, "the client gave up")
		return err
	}
	stats := q.ConnectionStats()
	r.RecordsSent, r.RecordsReceived = stats.RecordsSent, stats.RecordsReceived
	q.end(0, "")
	if c.asJSON {
		return cli.PrintJSON(cmd.OutOrStdout(), r)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), r)
	return err
}

// work does all that was asked for, and fills the report.
func (c *client) work(q *qmux.Conn, r *Report) error {
	took := make([]time.Duration, roundTrips)
	for i := range took {
		began := time.Now()
		if err := there(q, 0, 1); err != nil {
			return fmt.Errorf("round trip %d: %w", i, err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	r.P50 = float64(took[roundTrips/2].Nanoseconds()) / 1e3
	began := time.Now()
	if err := c.all(q); err != nil {
		return err
	}
	r.Seconds = time.Since(began).Seconds()
	r.Bytes = int64(c.streams) * c.size
	r.BytesPerSecond = float64(r.Bytes) / r.Seconds
	var err error
	r.DatagramsBack, err = datagrams(q, c.datagrams)
	return err
}

// all sends the streams, as many at once as may be. Behind one-way streams a
// round trip shows that the peer has them.
func (c *client) all(q *qmux.Conn) error {
	errs := make(chan error, 1)
	seats := make(chan struct{}, atOnce)
	var left sync.WaitGroup
	for i := range c.streams {
		seats <- struct{}{}
		if len(errs) > 0 {
			break
		}
		left.Go(func() {
			defer func() { <-seats }()
			err := error(nil)
			if c.oneWay {
				err = oneWay(q, uint64(i), c.size)
			} else {
				err = there(q, uint64(i), c.size)
			}
			if err != nil {
				select {
				case errs <- fmt.Errorf("stream %d of %d: %w", i+1, c.streams, err):
				default:
				}
			}
		})
	}
	left.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	if c.oneWay {
		return there(q, 0, 1)
	}
	return nil
}

// content is the bytes of a stream.
func content(number uint64, size int64) io.Reader {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], number)
	return io.LimitReader(rand.NewChaCha8(seed), size)
}

func oneWay(q *qmux.Conn, number uint64, size int64) error {
	s, err := q.OpenUniStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := io.Copy(s, content(number, size)); err != nil {
		return err
	}
	return s.Close()
}

// there sends a stream, and checks what comes back.
func there(q *qmux.Conn, number uint64, size int64) error {
	s, err := q.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(s, content(number, size))
		if err == nil {
			err = s.Close()
		}
		sent <- err
	}()
	if err = same(s, content(number, size), size); err != nil {
		s.CancelRead(1)
		s.CancelWrite(1)
	}
	return errors.Join(err, <-sent)
}

// same reads to the end of got, which must be as want.
func same(got, want io.Reader, size int64) error {
	a, b := make([]byte, 32<<10), make([]byte, 32<<10)
	for at := int64(0); ; {
		n, err := got.Read(a)
		k, _ := io.ReadFull(want, b[:n])
		if !bytes.Equal(a[:n], b[:k]) {
			return fmt.Errorf("what came back differs behind byte %d", at)
		}
		at += int64(n)
		switch {
		case err == io.EOF && at == size:
			return nil
		case err == io.EOF:
			return fmt.Errorf("of %d bytes %d came back", size, at)
		case err != nil:
			return err
		}
	}
}

// datagrams sends n of them and counts those that come back.
func datagrams(q *qmux.Conn, n int) (back int, err error) {
	p := make([]byte, datagramSize)
	for sent := 0; back < n; {
		if sent < n && sent-back < datagramsOut {
			binary.BigEndian.PutUint64(p, uint64(sent))
			if err := q.SendDatagram(p); err != nil {
				return back, fmt.Errorf("datagram %d: %w", sent+1, err)
			}
			sent++
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), datagramPatience)
		_, err := q.ReceiveDatagram(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return back, nil
		}
		if err != nil {
			return back, fmt.Errorf("datagram %d did not come back: %w", back+1, err)
		}
		back++
	}
	return back, nil
}
