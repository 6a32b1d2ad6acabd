package dissect

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Reader reads the RoCEv2 packets of a capture.
type Reader struct {
	// Other, if it is set, is called with each record that holds no packet.
	Other func(*Record)

	records Source
	port    uint16
	number  int // of the last record
	missing uint64
	file    bool

	others Others // records that are passed over
	last   Record
	bundle bundle // the rest of the last record
}

// Source is a capture's sequence of records.
type Source interface {
	// Next returns the next record, and io.EOF behind the last.
	Next() (Record, error)
}

// Record is a frame as it was captured.
type Record struct {
	Data      []byte // lives until the next record
	Length    int    // bytes that the frame had, of which Data is the beginning
	LinkType  int    // LINKTYPE_… of tcpdump.org/linktypes.html
	Time      time.Time
	Interface string
	Direction Direction
}

// NewSource returns a reader of another capture than a file. port is
// NewReader's.
func NewSource(s Source, port uint16) *Reader {
	if port == 0 {
		port = wire.Port
	}
	return &Reader{records: s, port: port}
}

// magicNg is the type of the block with which a pcapng file begins.
const magicNg = 0x0a0d0d0a

// NewReader reads the beginning of a file. port is the UDP port of packets, to
// or from which they go; 0 is RoCEv2's 4791. An error means that r is no
// capture. unzipped bounds the bytes that a gzipped file may hold.
func NewReader(r io.Reader, port uint16, unzipped int64) (*Reader, error) {
	reader := NewSource(nil, port)
	reader.file = true
	b, err := unzip(bufio.NewReader(r), unzipped)
	if err != nil {
		return nil, err
	}
	magic, err := b.Peek(4)
	switch {
	case err == io.EOF:
		return nil, fmt.Errorf("%d bytes are no capture file", len(magic))
	case err != nil:
		return nil, err
	case binary.LittleEndian.Uint32(magic) == magicNg:
		ng, err := pcapgo.NewNgReader(&blocks{r: b}, pcapgo.NgReaderOptions{
			WantMixedLinkType:  true,
			SkipUnknownVersion: true,
			StatisticsCallback: reader.statistics,
		})
		if err != nil {
			return nil, notCapture(err)
		}
		reader.records = ngRecords{ng}
	default:
		reader.records, err = newPcap(b)
		if err != nil {
			return nil, notCapture(err)
		}
	}
	return reader, nil
}

func notCapture(err error) error {
	return fmt.Errorf("no pcap or pcapng file: %w", noEOF(err))
}

// noEOF keeps the end of a file that came too early apart from its end.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Next reads on to the next RoCEv2 packet. It returns io.EOF at the end of the
// capture, and another error where a file is damaged; nothing follows either. A
// record that holds several packets, because it was captured before they were
// taken apart or after they were put together (GSO, GRO), gives each of them.
func (r *Reader) Next(p *Packet) error {
	for {
		if f, ok := r.bundle.next(); ok {
			r.emit(p, &f)
			p.Record = r.last
			p.Record.Data = r.bundle.carve(r.last.Data, &f)
			p.Record.Length = len(p.Record.Data)
			return nil
		}
		rec, err := r.records.Next()
		switch {
		case err == io.EOF:
			return io.EOF
		case err != nil && r.file:
			return fmt.Errorf("the file is damaged behind record %d: %w", r.number, err)
		case err != nil:
			return err
		}
		r.number++
		r.last = rec
		var f frame
		tunnelled := false
		if !f.parse(rec.LinkType, rec.Data) || !f.has(r.port) {
			f = frame{}
			var kind Kind
			if kind, tunnelled = f.tunnel(rec.LinkType, rec.Data, r.port); !tunnelled {
				r.others.add(kind)
				if r.Other != nil {
					r.Other(&rec)
				}
				continue
			}
		}
		if r.bundle.begin(&f) {
			if tunnelled { // its lengths are the whole bundle's
				r.last.Data, r.last.LinkType = r.last.Data[f.ip:], linkRaw
				r.bundle.f.ip, r.bundle.f.udp = 0, f.udp-f.ip
			}
			continue
		}
		r.emit(p, &f)
		p.Record = rec
		return nil
	}
}

// emit makes the packet of f, which is of the last record.
func (r *Reader) emit(p *Packet, f *frame) {
	*p = Packet{Number: r.number, Time: r.last.Time, Interface: r.last.Interface, Direction: r.last.Direction}
	p.fill(f)
}

// Records returns how many records were read, packets of other kinds included.
func (r *Reader) Records() int { return r.number }

// Others counts the records that held no packet.
func (r *Reader) Others() *Others { return &r.others }

// Missing returns how many packets the capturing side says it left out, as far
// as the file has been read.
func (r *Reader) Missing() uint64 { return r.missing }

func (r *Reader) statistics(_ int, s pcapgo.NgInterfaceStatistics) {
	if s.PacketsDropped != pcapgo.NgNoValue64 {
		r.missing += s.PacketsDropped
	}
}

// ngRecords reads a pcapng file.
type ngRecords struct{ r *pcapgo.NgReader }

var errLinkType = errors.New("a record without a link type")

func (f ngRecords) Next() (Record, error) {
	data, info, options, err := f.r.ZeroCopyReadPacketDataWithOptions()
	if err != nil {
		return Record{}, err
	}
	rec := Record{Data: data, Length: max(info.Length, len(data)), Time: info.Timestamp}
	if len(info.AncillaryData) == 0 {
		return rec, errLinkType
	}
	kind, ok := info.AncillaryData[0].(layers.LinkType)
	if !ok {
		return rec, errLinkType
	}
	rec.LinkType = int(kind)
	if i, err := f.r.Interface(info.InterfaceIndex); err == nil {
		rec.Interface = i.Name
	}
	if options.Flags != nil {
		switch options.Flags.Direction {
		case pcapgo.NgEpbFlagDirectionInbound:
			rec.Direction = Inbound
		case pcapgo.NgEpbFlagDirectionOutbound:
			rec.Direction = Outbound
		}
	}
	return rec, nil
}
