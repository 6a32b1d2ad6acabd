package rdmanet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

// stagger is how long RDMA is tried alone: the Connection Attempt Delay of RFC
// 8305, section 8.
const stagger = 250 * time.Millisecond

// attempt is how one of a race's two ended.
type attempt struct {
	conn net.Conn
	err  error
	rdma bool
}

// race dials by RDMA and, after stagger or when RDMA is refused, by the
// fallback, too (RFC 8305). The first connection wins. The other attempt is
// cancelled; a connection that it makes nevertheless is closed.
func (d *Dialer) race(ctx context.Context, network, address string) (net.Conn, error) {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	over, ended := make(chan struct{}), make(chan attempt)
	defer close(over)
	begin := func(rdma bool, dial func(ctx context.Context) (net.Conn, error)) {
		go func() {
			conn, err := dial(running)
			select {
			case ended <- attempt{conn, err, rdma}:
			case <-over:
				if err == nil {
					_ = conn.Close()
				}
			}
		}()
	}
	begin(true, func(ctx context.Context) (net.Conn, error) {
		c, err := d.dial(ctx, network, address)
		return c, err // a nil *Conn is looked at with a nil error only
	})
	fallback := func(ctx context.Context) (net.Conn, error) {
		return d.Fallback.DialContext(ctx, strings.Replace(network, "rdma", "tcp", 1), address)
	}
	late := time.NewTimer(stagger)
	defer late.Stop()
	timer, gaveUp := late.C, (<-chan struct{})(nil)
	var byRDMA, byOther error
	for {
		select {
		case a := <-ended:
			switch {
			case a.err == nil:
				return a.conn, nil
			case !a.rdma:
				byOther = a.err
			default:
				byRDMA, gaveUp = a.err, ctx.Done()
				if timer != nil && (ctx.Err() != nil || !fallsBack(a.err)) {
					return nil, opError("dial", address, a.err)
				}
				if timer != nil {
					timer = nil
					begin(false, fallback)
				}
			}
		case <-timer:
			timer = nil
			begin(false, fallback)
		case <-gaveUp: // RDMA's attempt says why when it is under way
			byOther = ctx.Err()
		}
		if byRDMA != nil && byOther != nil {
			return nil, opError("dial", address, fmt.Errorf("by RDMA: %w; by the fallback: %w", byRDMA, byOther))
		}
	}
}

// fallsBack reports whether another network may lead to a peer that RDMA did
// not: no device leads there, or no peer of this package answers.
func fallsBack(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENODEV, syscall.ENETUNREACH, syscall.EHOSTUNREACH, uapi.ErrRefused, uapi.ErrUnreachable},
		func(way error) bool { return errors.Is(err, way) })
}
