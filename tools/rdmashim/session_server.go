package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/rdmashim/rdmashim/uapi"
)

const (
	// messageSize is the room for a message of the other side.
	messageSize = 4096
	// counterSize is the word behind the file that the atomics count in.
	counterSize = 8
)

// serverSession is the passive side: memory that a client writes, reads and
// counts in, and one message each way.
type serverSession struct {
	endpoint
	limits  serverLimits
	memory  *budget
	charged int64 // taken of memory
	hello   hello
	mem     []byte // the client's bytes, padded, and the counter
	memMR   uapi.MR
	msg     []byte // received message, then the answer
	msgMR   uapi.MR
}

// run serves one client from its first message to its goodbye.
func (s *serverSession) run(ctx context.Context) error {
	if err := s.greet(); err != nil {
		return err
	}
	if _, err := s.connect(ctx, s.memMR); err != nil {
		return s.lost(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { s.ctl.conn.Close() })
	defer stop()
	go endIdle(ctx, cancel, s.limits.idle, heardOn(s.rdma, s.qp))
	left := make(chan error, 1)
	go func() {
		var g goodbye
		err := s.ctl.receive(&g, 0)
		if err != nil {
			cancel(err)
		}
		left <- err
	}()
	digest, err := s.answer(ctx)
	if err == nil {
		if err = <-left; err == nil {
			return s.sayFarewell(digest)
		}
	}
	if why := context.Cause(ctx); why != nil {
		err = why
	}
	return s.lost(err)
}

// lost says what a client that did not come to its end leaves.
func (s *serverSession) lost(err error) error {
	return fmt.Errorf("the transfer of %q (%s) was not completed and is lost: %w", s.hello.Name, size(s.hello.Bytes), err)
}

// greet takes the client's wishes and makes the memory and the queue pair.
func (s *serverSession) greet() error {
	if err := s.ctl.receive(&s.hello, peerSilence); err != nil {
		return fmt.Errorf("a client connected, but said nothing useful: %w", err)
	}
	w := welcome{PID: os.Getpid()}
	err := s.prepare(&w)
	if err != nil {
		w.Error = err.Error()
	}
	if sendErr := s.ctl.send(w); err == nil {
		err = sendErr
	}
	return err
}

func (s *serverSession) prepare(w *welcome) (err error) {
	switch {
	case s.hello.Version != controlVersion:
		return fmt.Errorf("the client speaks version %d of the control protocol, this server %d: use the same rdmashim on both sides", s.hello.Version, controlVersion)
	case s.hello.Bytes < 0 || s.hello.Bytes > s.limits.maxBytes:
		return fmt.Errorf("the client wants %d bytes of memory, this server gives at most %d (--max-bytes)", s.hello.Bytes, s.limits.maxBytes)
	}
	if w.Device, err = describe(s.rdma); err != nil {
		return err
	}
	if err = s.memory.take(s.hello.Bytes); err != nil {
		return err
	}
	s.charged = s.hello.Bytes
	padded := (int(s.hello.Bytes) + counterSize - 1) / counterSize * counterSize
	s.mem, s.memMR, err = s.alloc(padded+counterSize,
		uapi.AccessLocalWrite|uapi.AccessRemoteWrite|uapi.AccessRemoteRead|uapi.AccessRemoteAtomic)
	if err != nil {
		return err
	}
	if s.msg, s.msgMR, err = s.alloc(messageSize, uapi.AccessLocalWrite); err != nil {
		return err
	}
	if err = s.createQP(2, 2); err != nil {
		return err
	}
	_, err = s.rdma.PostRecv(s.qp, s.msgMR, 0, messageSize)
	return err
}

// answer waits for the client's message, which says by its immediate how many
// requests wrote the bytes, and answers with the digest of what lies in memory.
func (s *serverSession) answer(ctx context.Context) (string, error) {
	wc, err := s.next(ctx, "wait for the client's message")
	if err != nil {
		return "", err
	}
	if wc.Flags&uapi.WCWithImm == 0 {
		return "", errors.New("the client's message has no immediate")
	}
	sum := sha256.Sum256(s.mem[:s.hello.Bytes])
	digest := hex.EncodeToString(sum[:])
	n := copy(s.msg, digest)
	if _, err := s.rdma.PostSendImm(s.qp, s.msgMR, uint64(n), wc.Imm); err != nil {
		return "", err
	}
	_, err = s.next(ctx, "send the digest")
	return digest, err
}

func (s *serverSession) sayFarewell(digest string) error {
	counters, err := s.rdma.Counters()
	if err != nil {
		return err
	}
	return s.ctl.send(farewell{SHA256: digest, Counters: counters})
}
