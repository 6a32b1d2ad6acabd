package wire

import (
	"fmt"
	"slices"
	"strings"
)

// The identifiers of transport parameters (RFC 9000 section 18.2, RFC 9221, the
// draft on reliable resets, and the QMux draft for max_record_size).
const (
	paramMaxIdleTimeout = 0x01
	paramMaxData        = 0x04
	paramBidiLocal      = 0x05
	paramBidiRemote     = 0x06
	paramUni            = 0x07
	paramStreamsBidi    = 0x08
	paramStreamsUni     = 0x09
	paramMaxDatagram    = 0x20
	paramMaxRecord      = 0x0571c59429cd0845
	paramResetStreamAt  = 0x1d
	lastOfQUICv1        = 0x10
)

// MaxParameters is how many parameters a receiver reads, unknown ones included;
// peers send about ten.
const MaxParameters = 128

// Parameters describe a sender, which sends them before all else. Zero stands
// for a parameter that is not sent; MaxRecordSize is [DefaultMaxRecord] then.
type Parameters struct {
	MaxIdleTimeout       uint64 // milliseconds, 0: none
	InitialMaxData       uint64 // bytes the peer may send on all streams
	MaxStreamDataLocal   uint64 // … on a bidirectional stream that the sender opens
	MaxStreamDataRemote  uint64 // … on one that the peer opens
	MaxStreamDataUni     uint64 // … on a unidirectional stream
	MaxStreamsBidi       uint64 // streams the peer may open
	MaxStreamsUni        uint64
	MaxDatagramFrameSize uint64 // bytes of a whole DATAGRAM frame, 0: none taken
	MaxRecordSize        uint64 // bytes without the Size
	ResetStreamAt        bool   // RESET_STREAM_AT is understood
}

// number is a parameter with a number.
type number struct {
	id    uint64
	name  string
	value *uint64
}

// numbers are the parameters with numbers, in the order in which Append writes
// them.
func (p *Parameters) numbers() [9]number {
	return [...]number{
		{paramMaxIdleTimeout, "max_idle_timeout", &p.MaxIdleTimeout},
		{paramMaxData, "initial_max_data", &p.InitialMaxData},
		{paramBidiLocal, "initial_max_stream_data_bidi_local", &p.MaxStreamDataLocal},
		{paramBidiRemote, "initial_max_stream_data_bidi_remote", &p.MaxStreamDataRemote},
		{paramUni, "initial_max_stream_data_uni", &p.MaxStreamDataUni},
		{paramStreamsBidi, "initial_max_streams_bidi", &p.MaxStreamsBidi},
		{paramStreamsUni, "initial_max_streams_uni", &p.MaxStreamsUni},
		{paramMaxDatagram, "max_datagram_frame_size", &p.MaxDatagramFrameSize},
		{paramMaxRecord, "max_record_size", &p.MaxRecordSize},
	}
}

// Parse reads the data of a QX_TRANSPORT_PARAMETERS. Unknown parameters are
// ignored. The error is one of the ErrParam….
func (p *Parameters) Parse(b []byte) error {
	*p = Parameters{MaxRecordSize: DefaultMaxRecord}
	var seen [MaxParameters]uint64
	for count := 0; len(b) > 0; count++ {
		id, n := ParseVarint(b)
		if n == 0 {
			return ErrParamTruncated
		}
		size, k := ParseVarint(b[n:])
		if k == 0 || size > uint64(len(b)-n-k) {
			return ErrParamTruncated
		}
		value := b[n+k : n+k+int(size)]
		b = b[n+k+int(size):]

		if count == MaxParameters {
			return ErrParamCount
		}
		if slices.Contains(seen[:count], id) {
			return ErrParamTwice
		}
		seen[count] = id
		if err := p.set(id, value); err != nil {
			return err
		}
	}
	return nil
}

// set takes one parameter.
func (p *Parameters) set(id uint64, value []byte) error {
	numbers := p.numbers()
	i := slices.IndexFunc(numbers[:], func(n number) bool { return n.id == id })
	switch {
	case i >= 0:
		v, n := ParseVarint(value)
		if n == 0 || n != len(value) {
			return ErrParamLength
		}
		*numbers[i].value = v
	case id == paramResetStreamAt:
		if len(value) != 0 {
			return ErrParamLength
		}
		p.ResetStreamAt = true
	case id <= lastOfQUICv1:
		return ErrParamForbidden
	}
	if p.MaxRecordSize < DefaultMaxRecord || p.MaxStreamsBidi > MaxStreams || p.MaxStreamsUni > MaxStreams {
		return ErrParamValue
	}
	return nil
}

// changed calls yield with the place in numbers and the value of each parameter
// that has another value than its default.
func (p *Parameters) changed(yield func(i int, value uint64) bool) {
	for i, n := range p.numbers() {
		v := *n.value
		if v == 0 || n.id == paramMaxRecord && v == DefaultMaxRecord {
			continue
		}
		if !yield(i, v) {
			return
		}
	}
}

// Numbers calls yield with the name and the value of each parameter that has a
// number other than its default, in the order in which Append writes them.
func (p *Parameters) Numbers(yield func(name string, value uint64) bool) {
	p.changed(func(i int, v uint64) bool { return yield(p.numbers()[i].name, v) })
}

// String returns the parameters that are not their defaults in one line, such
// as "max_idle_timeout=30000 reset_stream_at".
func (p *Parameters) String() string {
	var words []string
	for name, value := range p.Numbers {
		words = append(words, fmt.Sprintf("%s=%d", name, value))
	}
	if p.ResetStreamAt {
		words = append(words, "reset_stream_at")
	}
	return strings.Join(words, " ")
}

// Append appends the parameters whose values are not their defaults to b, as
// the data of a QX_TRANSPORT_PARAMETERS.
func (p *Parameters) Append(b []byte) []byte {
	for i, v := range p.changed {
		b = AppendVarint(b, p.numbers()[i].id)
		b = AppendVarint(b, uint64(VarintLen(v)))
		b = AppendVarint(b, v)
	}
	if p.ResetStreamAt {
		b = AppendVarint(b, paramResetStreamAt)
		b = AppendVarint(b, 0)
	}
	return b
}
