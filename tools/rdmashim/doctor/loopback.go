package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/peer"
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
func checkLoopback(e *exam) Check { return e.loop() }

func (e *exam) transfer() Check {
	if e.opened == nil || e.openErr != nil {
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
	case noDescriptor(e.openErr):
		return "see descriptors"
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

// transferFix looks in the counters for the fate of the packets.
func (e *exam) transferFix() string {
	for _, fault := range []string{"loss=", "corrupt=", "reorder=", "dup=", "delay="} {
		if strings.Contains(e.o.Device, fault) {
			return "leave out what the device's name asks for: " + fault
		}
	}
	count, err := e.opened.Counters()
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

func (e *exam) writeAndRead() (err error) {
	var ends [2]peer.Endpoint
	var memory [2]peer.Memory
	for i := range ends {
		ends[i].RDMA = e.opened
		defer ends[i].Close()
		if memory[i], err = ends[i].Alloc(loopbackSize, uapi.AccessLocalWrite|uapi.AccessRemoteWrite|uapi.AccessRemoteRead); err != nil {
			return err
		}
		if err = ends[i].CreateQP(16, 16); err != nil {
			return err
		}
	}
	for i := range ends {
		there, err := e.opened.LocalEndpoint(ends[1-i].QP)
		if err == nil {
			err = e.opened.ConnectQP(ends[i].QP, there)
		}
		if err != nil {
			return err
		}
	}
	target, err := e.opened.QueryMR(memory[1].MR)
	if err != nil {
		return err
	}
	pattern := make([]byte, loopbackSize)
	_, _ = rand.Read(pattern)
	qp, own := ends[0].QP, memory[0]
	here, there := uapi.SGE{MR: own.MR, Length: loopbackSize}, target.Region()
	copy(own.Buf, pattern)
	if _, err = e.opened.Write(qp, here, there); err != nil {
		return err
	}
	if err = e.complete("WRITE", &ends[0], memory[1].Buf, pattern); err != nil {
		return err
	}
	clear(own.Buf)
	if _, err = e.opened.Read(qp, here, there); err != nil {
		return err
	}
	return e.complete("READ", &ends[0], own.Buf, pattern)
}

// complete waits for the completion of a request, and compares what arrived.
func (e *exam) complete(what string, end *peer.Endpoint, got, want []byte) error {
	ctx, cancel := context.WithTimeout(e.ctx, loopbackTime)
	defer cancel()
	if _, err := end.Next(ctx, what); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s completed, but other bytes arrived", what)
	}
	return nil
}
