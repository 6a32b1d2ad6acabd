package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

const (
	// loopbackSize is how many bytes travel: several packets of any MTU.
	loopbackSize = 32 << 10
	// loopbackTime bounds the wait for a completion; a silent peer is given up
	// after 2 s by the device itself.
	loopbackTime = 20 * time.Second
)

// checkLoopback connects two queue pairs of the device, writes and reads back.
func checkLoopback(e *exam) Check {
	e.looped.Do(func() { e.loop = e.transfer() })
	return e.loop
}

func (e *exam) transfer() Check {
	if e.c == nil || e.openErr != nil {
		return fail(e.openFix(), "%s does not open: %v", e.o.Device, e.openErr)
	}
	start := time.Now()
	if err := e.writeAndRead(); err != nil {
		return fail(e.transferFix(), "%v", err)
	}
	return pass("a WRITE and a READ of %s arrived, byte for byte, in %v", size(loopbackSize), time.Since(start).Round(time.Microsecond))
}

// openFix points to the check that tells why the device does not open.
func (e *exam) openFix() string {
	switch {
	case errors.Is(e.openErr, syscall.EADDRINUSE):
		return "see udp-port"
	case e.dev != nil && pathMTU(e.dev.MTU) == 0:
		return "see mtu"
	case e.kind == soft && (errors.Is(e.openErr, syscall.EADDRNOTAVAIL) || checkNetDev(e).Status == Fail):
		return "see netdev"
	case errors.Is(e.openErr, syscall.EADDRNOTAVAIL):
		return "see gid"
	case errors.Is(e.openErr, syscall.EACCES), errors.Is(e.openErr, syscall.EPERM):
		return "see files"
	case errors.Is(e.openErr, syscall.ENODEV):
		return "rdmashim link up --name " + e.kernel
	case errors.Is(e.openErr, syscall.ENETDOWN):
		return "see netdev and port"
	case errors.Is(e.openErr, syscall.EPROTONOSUPPORT):
		return "use it with programs of libibverbs; rdmashim drives rdma_rxe and soft devices"
	case errors.Is(e.openErr, syscall.ENOTSUP):
		return "use a soft device: rdmashim doctor soft"
	}
	return "see the checks above"
}

// transferFix looks in the counters for what became of the packets.
func (e *exam) transferFix() string {
	for _, fault := range []string{"loss=", "corrupt=", "reorder=", "dup=", "delay="} {
		if strings.Contains(e.o.Device, fault) {
			return "leave out what the device's name asks for: " + fault
		}
	}
	count, err := e.c.Counters()
	if err != nil {
		return "see the checks above"
	}
	switch {
	case count["drop_send_denied"] > 0:
		return fmt.Sprintf("let the packet filter pass outgoing UDP port %d: nft list ruleset", e.port)
	case count["drop_send_unreach"] > 0:
		return "see netdev and route"
	case count["drop_icrc"] > 0:
		return "something rewrites packets on their way: see nat"
	case e.kind == soft:
		return fmt.Sprintf("what was sent did not arrive: let the packet filter pass UDP port %d (nft list ruleset)", e.port)
	}
	return "see the checks above, and dmesg"
}

// side is one end of the loopback.
type side struct {
	buf []byte
	mr  uapi.MR
	qp  uapi.QP
}

func (e *exam) newSide() (s side, err error) {
	s.buf = make([]byte, loopbackSize)
	if s.mr, err = e.c.RegMR(s.buf, uapi.AccessLocalWrite|uapi.AccessRemoteWrite|uapi.AccessRemoteRead); err != nil {
		return s, err
	}
	s.qp, err = e.c.CreateQP(16, 16)
	return s, err
}

// free gives back what a side has; the context's end gives back the rest.
func (e *exam) free(s side) {
	if s.qp > 0 {
		_ = e.c.DestroyQP(s.qp)
	}
	if s.mr > 0 {
		_ = e.c.DeregMR(s.mr)
	}
}

func (e *exam) writeAndRead() error {
	a, err := e.newSide()
	defer func() { e.free(a) }()
	if err != nil {
		return err
	}
	b, err := e.newSide()
	defer func() { e.free(b) }()
	if err != nil {
		return err
	}
	for _, way := range [][2]side{{a, b}, {b, a}} {
		there, err := e.c.LocalEndpoint(way[1].qp)
		if err == nil {
			err = e.c.ConnectQP(way[0].qp, there)
		}
		if err != nil {
			return err
		}
	}
	pattern := make([]byte, loopbackSize)
	random := rand.NewPCG(rand.Uint64(), 0)
	for i := range pattern {
		pattern[i] = byte(random.Uint64())
	}
	copy(a.buf, pattern)
	info, err := e.c.QueryMR(b.mr)
	if err != nil {
		return err
	}
	if err := e.complete("WRITE", a.qp, func() (uapi.WRID, error) {
		return e.c.PostWrite(a.qp, a.mr, 0, info.Addr, info.RKey, loopbackSize)
	}); err != nil {
		return err
	}
	if !bytes.Equal(b.buf, pattern) {
		return errors.New("WRITE completed, but other bytes arrived")
	}
	clear(a.buf)
	if err := e.complete("READ", a.qp, func() (uapi.WRID, error) {
		return e.c.PostRead(a.qp, a.mr, 0, info.Addr, info.RKey, loopbackSize)
	}); err != nil {
		return err
	}
	if !bytes.Equal(a.buf, pattern) {
		return errors.New("READ completed, but other bytes arrived")
	}
	return nil
}

// complete posts a request and waits for its completion.
func (e *exam) complete(what string, qp uapi.QP, post func() (uapi.WRID, error)) error {
	if _, err := post(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, loopbackTime)
	defer cancel()
	wc := make([]uapi.WC, 1)
	if _, err := e.c.WaitCQ(ctx, qp, wc); err != nil {
		return fmt.Errorf("%s does not complete: %w", what, err)
	}
	if wc[0].Status != uapi.WCSuccess {
		return fmt.Errorf("%s completed with %v", what, wc[0].Status)
	}
	return nil
}
