package emu

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// direction of an attribute's data.
type direction uint8

const (
	in direction = iota
	out
)

// anyLength as an attribute's max: no bound but the field's.
const anyLength = 1<<16 - 1

// attrSpec is one attribute of a method (struct uverbs_attr_spec).
type attrSpec struct {
	id        abi.AttrID
	dir       direction
	min, max  int  // bytes
	mandatory bool // the client must give it
}

// method is one row of what RDMA_VERBS_IOCTL understands.
type method struct {
	object abi.ObjectID
	id     abi.MethodID
	name   string
	attrs  []attrSpec
	do     func(*call) error
}

// maxAttrs is the most attributes that a method here has.
const maxAttrs = 5

// Where the attributes of a method stand in its table, and so in call.attrs.
const (
	attrCoreIn = iota
	attrCoreOut
	attrWriteCmd
	attrHWIn
	attrHWOut
)

const (
	attrGIDTableSize = iota
	attrGIDTableFlags
	attrGIDTableEntries
	attrGIDTableCount
)

const (
	attrGIDEntryPort = iota
	attrGIDEntryIndex
	attrGIDEntryFlags
	attrGIDEntryResp
)

// methods are the ones that this kernel has. Every other is EPROTONOSUPPORT, as
// in a kernel that was built without it.
var methods = [...]method{
	{abi.ObjectDevice, abi.MethodInvokeWrite, "INVOKE_WRITE", []attrSpec{
		attrCoreIn:   {abi.AttrCoreIn, in, 4, anyLength, false},
		attrCoreOut:  {abi.AttrCoreOut, out, 0, anyLength, false},
		attrWriteCmd: {abi.AttrWriteCmd, in, 8, 8, true},
		attrHWIn:     {abi.AttrUHWIn, in, 0, anyLength, false},
		attrHWOut:    {abi.AttrUHWOut, out, 0, anyLength, false},
	}, invokeWrite},
	{abi.ObjectDevice, abi.MethodQueryContext, "QUERY_CONTEXT", nil, notSupported},
	{abi.ObjectDevice, abi.MethodQueryGIDTable, "QUERY_GID_TABLE", []attrSpec{
		attrGIDTableSize:    {abi.AttrQueryGIDTableEntrySize, in, 8, 8, true},
		attrGIDTableFlags:   {abi.AttrQueryGIDTableFlags, in, 4, 8, false},
		attrGIDTableEntries: {abi.AttrQueryGIDTableRespEntries, out, 0, anyLength, true},
		attrGIDTableCount:   {abi.AttrQueryGIDTableRespNumEntries, out, 8, 8, true},
	}, queryGIDTable},
	{abi.ObjectDevice, abi.MethodQueryGIDEntry, "QUERY_GID_ENTRY", []attrSpec{
		attrGIDEntryPort:  {abi.AttrQueryGIDEntryPort, in, 8, 8, true},
		attrGIDEntryIndex: {abi.AttrQueryGIDEntryGIDIndex, in, 8, 8, true},
		attrGIDEntryFlags: {abi.AttrQueryGIDEntryFlags, in, 4, 8, true},
		attrGIDEntryResp:  {abi.AttrQueryGIDEntryRespEntry, out, abi.GIDEntrySize, anyLength, true},
	}, queryGIDEntry},
}

func lookupMethod(o abi.ObjectID, id abi.MethodID) *method {
	for i := range methods {
		if methods[i].object == o && methods[i].id == id {
			return &methods[i]
		}
	}
	return nil
}
