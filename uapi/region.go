package uapi

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Region is a memory region as a peer names it, to read or write it.
//
// Its text form is
//
//	mr1,addr=0x7f0000001000,length=4096,rkey=0xabcd01,access=0x7
//
// and its binary form, for private data and messages, 24 bytes, big-endian:
// address (8), length (8), key (4), access (4).
type Region struct {
	Addr, Length uint64 // of the first byte, for WR.RemoteAddr; bytes, at least 1
	RKey         uint32
	Access       Access // what the peer allows there; 0 where that is unknown
}

// RegionSize is how many bytes the binary form of a Region has.
const RegionSize = 24

// Region is the part of a region's description that is meant for the peer.
func (i MRInfo) Region() Region {
	return Region{Addr: i.Addr, Length: i.Length, RKey: i.RKey, Access: i.Access &^ AccessMWBind}
}

// RegRegion registers a memory region as RegMRWith does, and returns also the
// Region that a peer must be told of. After an error that is zero.
func (d *Device) RegRegion(buf []byte, config MRConfig) (MR, Region, error) {
	mr, err := d.register(buf, config)
	if err != nil {
		return -1, Region{}, opError("RegRegion", "", err)
	}
	info, err := d.QueryMR(mr)
	if err != nil { // closed meanwhile
		return -1, Region{}, err
	}
	return mr, info.Region(), nil
}

// Validate reports what keeps the region from naming memory; EINVAL.
func (r Region) Validate() error {
	switch {
	case r.Length == 0:
		return errs.Explain(syscall.EINVAL, "region: it has no bytes")
	case r.Addr+r.Length < r.Addr:
		return errs.Explain(syscall.EINVAL, "region: %d bytes at %#x go past the end of memory", r.Length, r.Addr)
	case r.Access&^knownAccess != 0:
		return errs.Explain(syscall.EINVAL, "region: access %#x has unknown flags", uint32(r.Access))
	}
	return nil
}

// Slice is the part of the region that begins off bytes after its start and is
// n bytes long, at least 1. EINVAL when it leaves the region.
func (r Region) Slice(off, n uint64) (Region, error) {
	if err := r.Validate(); err != nil {
		return Region{}, err
	}
	if n == 0 || off > r.Length || n > r.Length-off {
		return Region{}, errs.Explain(syscall.EINVAL, "region: %d bytes at offset %d are no part of its %d bytes", n, off, r.Length)
	}
	r.Addr, r.Length = r.Addr+off, n
	return r, nil
}

// admit refuses an operation on the region's first n bytes that the peer would
// refuse. The peer has the last word all the same.
func (r Region) admit(op Op, n uint64) error {
	need := AccessRemoteWrite
	switch op {
	case OpRead:
		need = AccessRemoteRead
	case OpFetchAdd, OpCompareSwap:
		if need = AccessRemoteAtomic; r.Addr%8 != 0 {
			return errs.Explain(syscall.EINVAL, "an atomic at %#x of the peer: the address must be a multiple of 8", r.Addr)
		}
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if n > r.Length {
		return errs.Explain(syscall.EINVAL, "%d bytes at the start of the peer's region, which has %d", n, r.Length)
	}
	if r.Access != 0 && r.Access&need == 0 {
		return errs.Explain(syscall.EINVAL, "%v on a region that the peer registered without %v, with %v", op, need, r.Access)
	}
	return nil
}

// String is the text form.
func (r Region) String() string {
	return fmt.Sprintf("mr1,addr=%#x,length=%d,rkey=%#x,access=%#x", r.Addr, r.Length, r.RKey, uint32(r.Access))
}

// MarshalText is encoding.TextMarshaler. A region that is not valid is EINVAL.
func (r Region) MarshalText() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

// UnmarshalText is encoding.TextUnmarshaler.
func (r *Region) UnmarshalText(text []byte) error {
	parsed, err := ParseRegion(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

// ParseRegion reads the text form. It is strict: every field once, nothing
// else; errors are EINVAL, and EPROTONOSUPPORT for another version.
func ParseRegion(text string) (Region, error) {
	fields, err := splitText("region", text, "mr1,addr=,length=,rkey=,access=")
	if err != nil {
		return Region{}, err
	}
	var r Region
	var rkey, access uint64
	for i, f := range []numberField{{"addr=", &r.Addr, 64}, {"length=", &r.Length, 64}, {"rkey=", &rkey, 32}, {"access=", &access, 32}} {
		if err := f.parse("region", fields[i]); err != nil {
			return Region{}, err
		}
	}
	r.RKey, r.Access = uint32(rkey), Access(access)
	if err := r.Validate(); err != nil {
		return Region{}, err
	}
	return r, nil
}

// MarshalBinary is encoding.BinaryMarshaler. A region that is not valid is
// EINVAL.
func (r Region) MarshalBinary() ([]byte, error) {
	return r.AppendBinary(make([]byte, 0, RegionSize))
}

// AppendBinary appends the binary form to b.
func (r Region) AppendBinary(b []byte) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return b, err
	}
	b = binary.BigEndian.AppendUint64(b, r.Addr)
	b = binary.BigEndian.AppendUint64(b, r.Length)
	b = binary.BigEndian.AppendUint32(b, r.RKey)
	return binary.BigEndian.AppendUint32(b, uint32(r.Access)), nil
}

// UnmarshalBinary is encoding.BinaryUnmarshaler. It takes exactly one region,
// of private data its first RegionSize bytes; errors are EINVAL.
func (r *Region) UnmarshalBinary(b []byte) error {
	if len(b) != RegionSize {
		return errs.Explain(syscall.EINVAL, "region: %d bytes; one has %d", len(b), RegionSize)
	}
	parsed := Region{
		Addr:   binary.BigEndian.Uint64(b),
		Length: binary.BigEndian.Uint64(b[8:]),
		RKey:   binary.BigEndian.Uint32(b[16:]),
		Access: Access(binary.BigEndian.Uint32(b[20:])),
	}
	if err := parsed.Validate(); err != nil {
		return err
	}
	*r = parsed
	return nil
}
