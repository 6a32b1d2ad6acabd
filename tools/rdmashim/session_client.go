package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

// clientSession is the active side: it writes a file into the server's memory,
// sends a message, counts, and reads everything back.
type clientSession struct {
	endpoint
	file   *os.File
	bytes  int64
	stderr io.Writer

	buf    []byte // depth chunks, then the message, then an atomic's old value
	bufMR  uapi.MR
	remote uapi.Region
	bye    chan error // how the control connection's next message came
	last   farewell
	report report
}

const (
	messageAt = depth * chunk
	oldAt     = messageAt + messageSize
	clientBuf = oldAt + counterSize
)

// run does the whole job and fills the report.
func (s *clientSession) run(ctx context.Context) error {
	if err := s.greet(); err != nil {
		return err
	}
	regions, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if len(regions) != 1 || regions[0].Length < uint64(s.bytes)+counterSize {
		return errors.New("the server offered no memory of the size that was asked for")
	}
	s.remote = regions[0]
	s.bye = make(chan error, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		// Nothing comes before the goodbye: that this returns earlier means
		// that the server has gone.
		err := s.ctl.receive(&s.last, 0)
		s.bye <- err
		if err != nil {
			cancel(err)
		}
	}()
	if err := s.transfer(ctx); err != nil {
		return s.explain(ctx, err)
	}
	return s.leave()
}

// greet tells the server what is to come and makes buffers and queue pair.
func (s *clientSession) greet() (err error) {
	r := &s.report
	r.File, r.Bytes, r.ClientPID = s.file.Name(), s.bytes, os.Getpid()
	if r.ClientDevice, err = describe(s.rdma); err != nil {
		return err
	}
	if s.buf, s.bufMR, err = s.alloc(clientBuf, uapi.AccessLocalWrite); err != nil {
		return err
	}
	// One send more than the pipeline uses, for the probe of a silent server.
	if err = s.createQP(depth+1, 2); err != nil {
		return err
	}
	if _, err = s.rdma.PostRecv(s.qp, s.bufMR, messageAt, messageSize); err != nil {
		return err
	}
	if err = s.ctl.send(hello{Version: controlVersion, Name: s.file.Name(), Bytes: s.bytes}); err != nil {
		return err
	}
	var w welcome
	if err = s.ctl.receive(&w, peerSilence); err != nil {
		return fmt.Errorf("wait for the server's welcome: %w", err)
	}
	if w.Error != "" {
		return fmt.Errorf("the server refused: %s", w.Error)
	}
	r.ServerPID, r.ServerDevice = w.PID, w.Device
	return nil
}

// transfer is the part that RDMA does.
func (s *clientSession) transfer(ctx context.Context) error {
	p := &pipeline{rdma: s.rdma, qp: s.qp, mr: s.bufMR, buf: s.buf[:messageAt], remote: s.remote}
	if err := s.write(ctx, p); err != nil {
		return err
	}
	if err := s.message(ctx); err != nil {
		return err
	}
	if err := s.count(ctx); err != nil {
		return err
	}
	return s.readBack(ctx, p)
}

func (s *clientSession) write(ctx context.Context, p *pipeline) (err error) {
	hash := sha256.New()
	p.bar = newProgress(s.stderr, "WRITE", s.bytes)
	defer p.bar.Done()
	start := time.Now()
	if s.report.writes, err = p.write(ctx, io.TeeReader(s.file, hash), s.bytes); err != nil {
		return err
	}
	s.report.WriteSeconds, s.report.Goodput = rate(s.bytes, time.Since(start))
	s.report.SHA256Source = hex.EncodeToString(hash.Sum(nil))
	return nil
}

func (s *clientSession) readBack(ctx context.Context, p *pipeline) (err error) {
	hash := sha256.New()
	p.bar = newProgress(s.stderr, "READ", s.bytes)
	defer p.bar.Done()
	start := time.Now()
	if s.report.reads, err = p.read(ctx, hash, s.bytes); err != nil {
		return err
	}
	s.report.ReadSeconds, s.report.ReadGoodput = rate(s.bytes, time.Since(start))
	s.report.SHA256Readback = hex.EncodeToString(hash.Sum(nil))
	return nil
}

// message tells the server that the bytes are there, with the number of
// requests as the immediate, and takes the digest of what it sees.
func (s *clientSession) message(ctx context.Context) error {
	imm := uint32(s.report.writes)
	text := fmt.Sprintf("%d bytes of %s are in your memory", s.bytes, s.file.Name())
	n := copy(s.buf[:messageSize], text)
	if _, err := s.rdma.PostSendImm(s.qp, s.bufMR, uint64(n), imm); err != nil {
		return err
	}
	for range 2 { // the send, and the answer
		wc, err := s.next(ctx, "message to the server and its answer")
		if err != nil {
			return err
		}
		if wc.Opcode != uapi.WCOpRecv {
			continue
		}
		if wc.Flags&uapi.WCWithImm == 0 || wc.Imm != imm {
			return fmt.Errorf("the server's answer carries the immediate %#x, not %#x", wc.Imm, imm)
		}
		s.report.SHA256Server = string(s.buf[messageAt : messageAt+min(wc.ByteLen, messageSize)])
	}
	return nil
}

// count adds to the word behind the file twice and sees the first addition.
func (s *clientSession) count(ctx context.Context) error {
	word := s.remote.Addr + s.remote.Length - counterSize
	old, err := uapi.Uint64At(s.buf, oldAt)
	if err != nil {
		return err
	}
	add := func(n uint64) (uint64, error) {
		if _, err := s.rdma.PostFetchAdd(s.qp, s.bufMR, oldAt, word, s.remote.RKey, n); err != nil {
			return 0, err
		}
		_, err := s.next(ctx, "atomic fetch-and-add")
		return old.Load(), err
	}
	r := &s.report
	if r.AtomicBefore, err = add(uint64(s.report.writes) + 1); err != nil {
		return err
	}
	if r.AtomicAfter, err = add(0); err != nil {
		return err
	}
	if want := r.AtomicBefore + uint64(s.report.writes) + 1; r.AtomicAfter != want {
		return fmt.Errorf("the atomic counter is %d, not %d", r.AtomicAfter, want)
	}
	return nil
}

// leave ends the session in order and takes the server's counters.
func (s *clientSession) leave() error {
	counters, err := s.rdma.Counters()
	if err != nil {
		return err
	}
	s.report.Client = counters
	if err := s.ctl.send(goodbye{OK: true}); err != nil {
		return fmt.Errorf("the server's counters are lost: %w", s.probe(err))
	}
	t := time.NewTimer(peerSilence)
	defer t.Stop()
	select {
	case err = <-s.bye:
	case <-t.C:
		err = fmt.Errorf("no answer within %v", peerSilence)
	}
	if err != nil {
		return fmt.Errorf("the server's counters are lost: %w", s.probe(err))
	}
	s.report.Server = s.last.Counters
	return nil
}

// explain turns the failure of a transfer whose server has gone into what
// RDMA says about it.
func (s *clientSession) explain(ctx context.Context, err error) error {
	var wc *uapi.WCError
	if errors.As(err, &wc) || !errors.Is(context.Cause(ctx), errPeerGone) {
		return err
	}
	return s.probe(err)
}

// probe asks the queue pair whether the server is still there, with a write of
// no bytes, and adds its verdict to err: RETRY_EXC_ERR for a server that died,
// nothing for one that only closed the control connection.
func (s *clientSession) probe(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), peerSilence-time.Second)
	defer cancel()
	// The queue may hold requests that the same silence ends.
	_, _ = s.rdma.PostWrite(s.qp, s.bufMR, 0, s.remote.Addr, s.remote.RKey, 0)
	wc := make([]uapi.WC, depth+1)
	for {
		n, waitErr := s.rdma.WaitCQ(ctx, s.qp, wc)
		if waitErr != nil {
			return err
		}
		for _, c := range wc[:n] {
			if bad := c.Err(); bad != nil {
				return fmt.Errorf("%w: %w", err, bad)
			}
			if c.Opcode == uapi.WCOpWrite && c.ByteLen == 0 {
				return err
			}
		}
	}
}

// rate gives seconds and bytes a second.
func rate(bytes int64, d time.Duration) (seconds, perSecond float64) {
	seconds = max(d.Seconds(), 1e-9)
	return seconds, float64(bytes) / seconds
}
