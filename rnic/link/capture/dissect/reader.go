package dissect

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Reader reads the RoCEv2 packets of a capture file.
type Reader struct {
	records records
	port    uint16
	number  int // of the last record
	missing uint64
}

// records is a file's sequence of records.
type records interface {
	next() (record, error)
}

// record is what a file says of a packet. data lives until the next one.
type record struct {
	data      []byte
	linkType  int
	info      gopacket.CaptureInfo
	iface     string
	direction Direction
}

// magicNg is the type of the block with which a pcapng file begins.
const magicNg = 0x0a0d0d0a

// NewReader reads the beginning of a file. port is the UDP port of packets, to or
// from which they go; 0 is RoCEv2's 4791. An error means that r is no capture.
func NewReader(r io.Reader, port uint16) (*Reader, error) {
	if port == 0 {
		port = wire.Port
	}
	reader := &Reader{port: port}
	b, err := unzip(bufio.NewReader(r))
	if err != nil {
		return nil, err
	}
	magic, err := b.Peek(4)
	switch {
	case err == io.EOF:
		return nil, fmt.Errorf("dissect: %d bytes are no capture file", len(magic))
	case err != nil:
		return nil, err
	case binary.LittleEndian.Uint32(magic) == magicNg:
		ng, err := pcapgo.NewNgReader(b, pcapgo.NgReaderOptions{
			WantMixedLinkType:  true,
			SkipUnknownVersion: true,
			StatisticsCallback: reader.statistics,
		})
		if err != nil {
			return nil, notCapture(err)
		}
		reader.records = ngRecords{ng}
	default:
		old, err := pcapgo.NewReader(b)
		if err != nil {
			return nil, notCapture(err)
		}
		reader.records = pcapRecords{old}
	}
	return reader, nil
}

func notCapture(err error) error {
	return fmt.Errorf("dissect: no pcap or pcapng file: %w", noEOF(err))
}

// noEOF keeps the end of a file that came too early apart from its end.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Next reads on to the next RoCEv2 packet. It returns io.EOF at the end of the
// file, and another error where the file is damaged; nothing follows either.
func (r *Reader) Next(p *Packet) error {
	for {
		rec, err := r.records.next()
		if err == io.EOF {
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("dissect: the file is damaged behind record %d: %w", r.number, err)
		}
		r.number++
		var f frame
		if !f.parse(rec.linkType, rec.data) || f.src.Port() != r.port && f.dst.Port() != r.port {
			continue
		}
		*p = Packet{Number: r.number, Time: rec.info.Timestamp, Interface: rec.iface, Direction: rec.direction}
		p.fill(&f)
		return nil
	}
}

// Records returns how many records were read, packets of other kinds included.
func (r *Reader) Records() int { return r.number }

// Missing returns how many packets the capturing side says it left out, as far
// as the file has been read.
func (r *Reader) Missing() uint64 { return r.missing }

func (r *Reader) statistics(_ int, s pcapgo.NgInterfaceStatistics) {
	if s.PacketsDropped != pcapgo.NgNoValue64 {
		r.missing += s.PacketsDropped
	}
}

// pcapRecords reads a classic file.
type pcapRecords struct{ r *pcapgo.Reader }

func (f pcapRecords) next() (record, error) {
	data, info, err := f.r.ZeroCopyReadPacketData()
	if info.CaptureLength > 0 {
		err = noEOF(err) // the file ends behind a record's header
	}
	return record{data: data, info: info, linkType: int(f.r.LinkType())}, err
}

// ngRecords reads a pcapng file.
type ngRecords struct{ r *pcapgo.NgReader }

var errLinkType = errors.New("a record without a link type")

func (f ngRecords) next() (record, error) {
	data, info, options, err := f.r.ZeroCopyReadPacketDataWithOptions()
	if err != nil {
		return record{}, err
	}
	rec := record{data: data, info: info}
	if len(info.AncillaryData) == 0 {
		return rec, errLinkType
	}
	kind, ok := info.AncillaryData[0].(layers.LinkType)
	if !ok {
		return rec, errLinkType
	}
	rec.linkType = int(kind)
	if i, err := f.r.Interface(info.InterfaceIndex); err == nil {
		rec.iface = i.Name
	}
	if options.Flags != nil {
		switch options.Flags.Direction {
		case pcapgo.NgEpbFlagDirectionInbound:
			rec.direction = Inbound
		case pcapgo.NgEpbFlagDirectionOutbound:
			rec.direction = Outbound
		}
	}
	return rec, nil
}
