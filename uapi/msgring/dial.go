package msgring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// Dial connects to a peer that listens at addr, HOST:PORT, and calls Accept for
// this end's request.
//
// Errors, beside those of uapi.Device.Dial: *core.Refusal when the peer
// refuses the hello, and is uapi.ErrRefused as well; EINVAL for a configuration
// that is not one; EPROTO and *core.Refusal when the peer's hello is not one.
func Dial(ctx context.Context, device *uapi.Device, addr string, config Config) (*Conn, error) {
	c, err := newConn(device, config)
	if err != nil {
		return nil, err
	}
	hello := c.hello()
	qp, err := device.Dial(ctx, addr, uapi.DialConfig{
		Private:   hello.Append(nil, false),
		QPConfig:  c.config.queuePair(c.memory),
		KeepAlive: config.KeepAlive,
		Prepare: func(qp uapi.QP) error {
			c.qp = qp
			return c.postReceives()
		},
	})
	if err != nil {
		return nil, errors.Join(refused(err), c.memory.free())
	}
	info, err := device.QueryConn(qp)
	if err == nil {
		err = protocol(c.peer.Parse(info.PrivateData, true))
	}
	if err == nil {
		err = c.answered(&hello)
	}
	if err == nil {
		err = c.open(info)
	}
	if err != nil {
		return nil, errors.Join(err, device.DestroyQP(qp), c.memory.free())
	}
	return c, nil
}

// answered checks the peer's answer to a hello.
func (c *Conn) answered(hello *core.Hello) error {
	if err := hello.Meets(&c.peer); err != nil {
		return protocol(err)
	}
	return protocol(c.config.Session.answered(&c.peer))
}

// protocol is why the peer's answer is not one.
func protocol(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("msgring: the peer's answer: %w (%w)", err, syscall.EPROTO)
}

// refused finds the peer's refusal in an error of Dial, which is of all
// addresses that were tried.
func refused(err error) error {
	if refusal := find(err); refusal != nil {
		return fmt.Errorf("%w: %w", err, refusal)
	}
	return err
}

func find(err error) *core.Refusal {
	if reject, ok := err.(*uapi.RejectError); ok {
		if refusal, ok := core.ParseRefusal(reject.PrivateData); ok {
			return refusal
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return find(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if refusal := find(err); refusal != nil {
				return refusal
			}
		}
	}
	return nil
}

// Accept answers a request that a peer's Dial made. It refuses a hello that
// does not meet config and tells the peer why.
//
// Errors, beside those of uapi.Request.Accept: *core.Refusal for a hello that
// was refused; EINVAL for a configuration that is not one; those of
// Config.Admit. The request is answered after any failure.
func Accept(ctx context.Context, request *uapi.Request, config Config) (*Conn, error) {
	if err := config.Check(); err != nil {
		return nil, errors.Join(err, request.Reject(0, nil))
	}
	peer, err := config.admit(request.PrivateData)
	if err != nil {
		return nil, errors.Join(err, request.Reject(uapi.RejectedByProgram, refusalTo(err)))
	}
	c, err := newConn(request.Device, config)
	if err != nil {
		return nil, errors.Join(err, request.Reject(0, nil))
	}
	c.peer = peer
	if err = c.prepare(request); err != nil {
		return nil, errors.Join(err, request.Reject(0, nil), c.memory.free())
	}
	hello := c.hello()
	qp, err := request.Accept(ctx, hello.Append(nil, true))
	if err != nil {
		return nil, errors.Join(err, c.memory.free())
	}
	info, err := c.memory.device.QueryConn(qp)
	if err == nil {
		err = c.open(info)
	}
	if err != nil {
		return nil, errors.Join(err, c.memory.device.DestroyQP(qp), c.memory.free())
	}
	return c, nil
}

// admit reads a request's hello, or refuses it, before anything is made for it,
// and decides about its session.
func (c *Config) admit(hello []byte) (peer core.Hello, err error) {
	if err = peer.Parse(hello, false); err == nil {
		mine := core.Hello{Mode: cmp.Or(c.Mode, Bytes), Service: core.ServiceHash(c.Service)}
		err = mine.Meets(&peer)
	}
	if err == nil {
		err = c.decide(&peer)
	}
	return peer, err
}

// refusalTo is the answer for the peer to an error of admit: a refusal, or
// nothing.
func refusalTo(err error) []byte {
	refusal := (*core.Refusal)(nil)
	if !errors.As(err, &refusal) {
		return nil
	}
	answer := *refusal // the program's may be shared
	answer.Version = Version
	return answer.Append(nil)
}

// prepare makes the queue pair of a request and posts its receives.
func (c *Conn) prepare(request *uapi.Request) (err error) {
	if c.qp, err = request.CreateQPWith(c.config.queuePair(c.memory)); err != nil {
		return err
	}
	return c.postReceives()
}
