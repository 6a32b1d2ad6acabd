package abi

// CmdHdr is struct ib_uverbs_cmd_hdr, the head of every command given to write().
// InWords and OutWords count units of 4 bytes in a plain command, InWords with this header;
// in an extended one (CmdFlagExtended) units of 8 bytes, without the two headers.
type CmdHdr struct {
	Command  Command
	InWords  uint16
	OutWords uint16
}

// CmdHdrSize is the size of ib_uverbs_cmd_hdr in bytes.
const CmdHdrSize = 8

// Put encodes v into the first CmdHdrSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CmdHdr) Put(b []byte) {
	clear(b[:CmdHdrSize])
	le.PutUint32(b[0:], uint32(v.Command))
	le.PutUint16(b[4:], v.InWords)
	le.PutUint16(b[6:], v.OutWords)
}

// Parse decodes the first CmdHdrSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CmdHdr) Parse(b []byte) error {
	if len(b) < CmdHdrSize {
		return ErrShort
	}
	v.Command = Command(le.Uint32(b[0:]))
	v.InWords = le.Uint16(b[4:])
	v.OutWords = le.Uint16(b[6:])
	return nil
}

// ExCmdHdr is struct ib_uverbs_ex_cmd_hdr, which follows CmdHdr in an extended command.
type ExCmdHdr struct {
	Response         uint64
	ProviderInWords  uint16
	ProviderOutWords uint16
	Reserved         uint32 // cmd_hdr_reserved: must be 0
}

// ExCmdHdrSize is the size of ib_uverbs_ex_cmd_hdr in bytes.
const ExCmdHdrSize = 16

// Put encodes v into the first ExCmdHdrSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ExCmdHdr) Put(b []byte) {
	clear(b[:ExCmdHdrSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint16(b[8:], v.ProviderInWords)
	le.PutUint16(b[10:], v.ProviderOutWords)
	le.PutUint32(b[12:], v.Reserved)
}

// Parse decodes the first ExCmdHdrSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ExCmdHdr) Parse(b []byte) error {
	if len(b) < ExCmdHdrSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.ProviderInWords = le.Uint16(b[8:])
	v.ProviderOutWords = le.Uint16(b[10:])
	v.Reserved = le.Uint32(b[12:])
	return nil
}
