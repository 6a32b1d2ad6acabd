package peer

import (
	"context"
	"fmt"
	"net"
)

// AcceptAll gives each client that gets a seat to begin, which gives the seat
// back, until ctx ends; the others it refuses. The caller that ends ctx
// closes the listener.
func AcceptAll(ctx context.Context, l net.Listener, seats *Seats, failed *FailureLog, refuse, begin func(client net.Conn)) error {
	for {
		c, err := Accept(ctx, l, failed.W)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				refuse(c)
			}
			return nil // ended by a signal
		case err != nil:
			return fmt.Errorf("accept a client: %w", err)
		}
		if err := seats.Take(); err != nil {
			refuse(c)
			failed.Add(fmt.Errorf("client %v: %w", c.RemoteAddr(), err))
			continue
		}
		begin(c)
	}
}
