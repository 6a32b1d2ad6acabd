package uapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Introduction is the message that two programs exchange, over TCP say, before
// they connect queue pairs.
type Introduction struct {
	Endpoint Endpoint
	// Regions are open to the peer, in an order that the programs agree on;
	// at most 1024.
	Regions []Region
	// Data is the programs' own; at most 4096 bytes.
	Data []byte
}

// The frame of an introduction, numbers big-endian:
//
//	0  "RDIN"
//	4  u8  version, 2
//	5  u8  kind: 1 introduction, 2 ready, 3 path
//	6  u16 0
//	8  u32 bytes that follow
//
// An introduction follows with the endpoint (40 bytes), u32 number of regions,
// u32 bytes of data, the regions (u64 address, u64 length, u32 rkey, u32
// access) and the data. Ready has nothing. Path has u32, the largest path MTU
// in bytes that the sender can use with this peer.
const (
	frameMagic      = "RDIN"
	frameVersion    = 2
	frameHeader     = 12
	frameIntroduce  = 1
	frameReady      = 2
	framePath       = 3
	introFixed      = endpointSize + 8
	maxRegions      = 1024
	maxIntroData    = 4096
	maxIntroPayload = introFixed + maxRegions*RegionSize + maxIntroData
)

// DefaultExchangeTimeout bounds Exchange and ConnectOver when ctx has no
// deadline.
const DefaultExchangeTimeout = 30 * time.Second

// Exchange sends mine and returns the peer's introduction. The peer calls
// Exchange as well: it makes no difference which side dialled. It uses up
// exactly one frame of the connection in each direction and leaves it open, to
// be used further. It ends with ctx, or after DefaultExchangeTimeout when ctx
// has no deadline. Deadlines that the connection has do not count: it replaces
// them, and leaves none.
//
// The peer's message is bounded and checked: errors are EPROTO for something
// else than an introduction, EPROTONOSUPPORT for another version, EMSGSIZE for
// too much, EINVAL for senseless contents; io.ErrUnexpectedEOF when the peer
// hangs up.
func Exchange(ctx context.Context, conn net.Conn, mine Introduction) (theirs Introduction, err error) {
	payload, err := mine.append(nil)
	if err == nil {
		var answer []byte
		answer, err = swapFrames(ctx, conn, frameIntroduce, payload)
		if err == nil {
			theirs, err = parseIntroduction(answer)
		}
	}
	return theirs, opError("Exchange", connName(conn), err)
}

// exchangeReady returns when both sides have called it.
func exchangeReady(ctx context.Context, conn net.Conn) error {
	answer, err := swapFrames(ctx, conn, frameReady, nil)
	if err == nil && len(answer) != 0 {
		err = errs.Explain(syscall.EPROTO, "the peer's ready frame has %d bytes", len(answer))
	}
	return err
}

// exchangePath tells the peer the path MTU that this side would use, and
// returns the smaller one of both: each side knows only its own route, and both
// must use the same path MTU.
func exchangePath(ctx context.Context, conn net.Conn, mtu int) (int, error) {
	answer, err := swapFrames(ctx, conn, framePath, binary.BigEndian.AppendUint32(nil, uint32(mtu)))
	if err != nil {
		return 0, err
	}
	if len(answer) != 4 || !abi.IsPathMTU(int(binary.BigEndian.Uint32(answer))) {
		return 0, errs.Explain(syscall.EPROTO, "the peer's path frame has %d bytes, %x", len(answer), answer)
	}
	return min(mtu, int(binary.BigEndian.Uint32(answer))), nil
}

func connName(conn net.Conn) string {
	if conn == nil || conn.RemoteAddr() == nil {
		return ""
	}
	return "with " + conn.RemoteAddr().String()
}

// swapFrames writes one frame and reads one at the same time: neither side
// needs the other to begin, nor buffers in between.
func swapFrames(ctx context.Context, conn net.Conn, kind byte, payload []byte) ([]byte, error) {
	if conn == nil {
		return nil, errs.Explain(syscall.EINVAL, "there is no connection")
	}
	conn.SetDeadline(time.Time{}) // of the caller's use before
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx, DefaultExchangeTimeout)
	defer cancel()
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		conn.SetDeadline(time.Unix(1, 0))
	})
	written := make(chan error, 1)
	go func() { written <- writeFrame(conn, kind, payload) }()
	answer, err := readFrame(conn, kind)
	if err != nil {
		// The peer may never read the frame that is being written.
		conn.SetWriteDeadline(time.Unix(1, 0))
	}
	if werr := <-written; err == nil {
		err = werr
	}
	if !stop() {
		<-interrupted
	}
	conn.SetDeadline(time.Time{})
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer, err
}

func writeFrame(w io.Writer, kind byte, payload []byte) error {
	frame := make([]byte, 0, frameHeader+len(payload))
	frame = append(frame, frameMagic...)
	frame = append(frame, frameVersion, kind, 0, 0)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(payload)))
	frame = append(frame, payload...)
	_, err := w.Write(frame)
	return err
}

// readFrame reads one frame and not a byte more.
func readFrame(r io.Reader, kind byte) ([]byte, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, hungUp(err)
	}
	length := binary.BigEndian.Uint32(head[8:])
	switch {
	case string(head[:4]) != frameMagic:
		return nil, errs.Explain(syscall.EPROTO, "the peer sent %q, not an introduction: is that the right port?", head[:4])
	case head[4] != frameVersion:
		return nil, errs.Explain(syscall.EPROTONOSUPPORT, "the peer speaks version %d of the exchange, this side %d", head[4], frameVersion)
	case head[5] != kind || head[6] != 0 || head[7] != 0:
		return nil, errs.Explain(syscall.EPROTO, "the peer sent frame %d where %d is due", head[5], kind)
	case length > maxIntroPayload:
		return nil, errs.Explain(syscall.EMSGSIZE, "the peer announces %d bytes; an introduction has at most %d", length, maxIntroPayload)
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, hungUp(err)
	}
	return payload, nil
}

func hungUp(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the peer hung up: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// append encodes the introduction without its frame.
func (in *Introduction) append(b []byte) ([]byte, error) {
	if len(in.Regions) > maxRegions || len(in.Data) > maxIntroData {
		return b, errs.Explain(syscall.EMSGSIZE, "an introduction has at most %d regions and %d bytes of data, not %d and %d",
			maxRegions, maxIntroData, len(in.Regions), len(in.Data))
	}
	b, err := in.Endpoint.AppendBinary(b)
	if err != nil {
		return b, err
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(in.Regions)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(in.Data)))
	for _, r := range in.Regions {
		if b, err = r.AppendBinary(b); err != nil {
			return b, err
		}
	}
	return append(b, in.Data...), nil
}

// parseIntroduction decodes exactly one introduction.
func parseIntroduction(b []byte) (Introduction, error) {
	var in Introduction
	if len(b) < introFixed {
		return in, errs.Explain(syscall.EINVAL, "an introduction of %d bytes is cut off", len(b))
	}
	if err := in.Endpoint.UnmarshalBinary(b[:endpointSize]); err != nil {
		return in, err
	}
	regions := binary.BigEndian.Uint32(b[endpointSize:])
	data := binary.BigEndian.Uint32(b[endpointSize+4:])
	b = b[introFixed:]
	if regions > maxRegions || data > maxIntroData || len(b) != int(regions)*RegionSize+int(data) {
		return Introduction{}, errs.Explain(syscall.EINVAL, "an introduction with %d regions and %d bytes of data does not have %d bytes more",
			regions, data, len(b))
	}
	for i := range int(regions) {
		var r Region
		if err := r.UnmarshalBinary(b[i*RegionSize:][:RegionSize]); err != nil {
			return Introduction{}, fmt.Errorf("region %d of the introduction: %w", i, err)
		}
		in.Regions = append(in.Regions, r)
	}
	if data > 0 {
		in.Data = bytes.Clone(b[int(regions)*RegionSize:])
	}
	return in, nil
}

// ConnectOver connects a queue pair to the peer's over any stream connection,
// usually TCP: it exchanges introductions (the endpoint of qp, the regions
// mrs, data), agrees on a path MTU that the routes of both carry, connects, and
// returns when the peer has connected as well, which
// calls ConnectOver too. Receives that the peer's first message needs are
// posted before. The connection stays open; keep it to notice when the peer's
// process ends. ctx and errors are those of Exchange and ConnectQP.
func (d *Device) ConnectOver(ctx context.Context, conn net.Conn, qp QP, mrs []MR, data []byte) (peer Introduction, err error) {
	mine := Introduction{Data: data}
	if mine.Endpoint, err = d.LocalEndpoint(qp); err != nil {
		return peer, err
	}
	for _, mr := range mrs {
		info, err := d.QueryMR(mr)
		if err != nil {
			return peer, err
		}
		mine.Regions = append(mine.Regions, info.Region())
	}
	if peer, err = Exchange(ctx, conn, mine); err != nil {
		return peer, err
	}
	mtu, err := d.routeMTU(qp, peer.Endpoint)
	if err != nil {
		return peer, err
	}
	if peer.Endpoint.MTU, err = exchangePath(ctx, conn, mtu); err != nil {
		return peer, opError("ConnectOver", connName(conn), err)
	}
	if err = d.ConnectQP(qp, peer.Endpoint); err != nil {
		return peer, err
	}
	return peer, opError("ConnectOver", connName(conn), exchangeReady(ctx, conn))
}
