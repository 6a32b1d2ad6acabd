//go:build linux || darwin

package conform

import (
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// methodExample holds arguments that a kernel takes: the data of the attributes
// that are given, by name; an output's is made up.
type methodExample struct {
	data  func(s *stand) map[string]uint64
	out   []string // outputs that are given
	sizes map[string]int
	wrong []wrongCall
	opens bool // it works on a file without a context, and only there
}

// wrongCall is a well-formed one that is refused.
type wrongCall struct {
	what    string
	prepare func(s *stand)
	data    func(s *stand, d map[string]uint64)
}

// Where a method's outputs lie in raw.mem, one after another.
const (
	methodOut     = rawOut
	methodOutSize = 256
)

// args makes the attributes of a good call, in the table's order, but for what
// change spoils, which may be nil.
func (x *methodExample) args(e *abi.Entry, s *stand, change func(*stand, map[string]uint64)) []abi.IoctlAttr {
	data := map[string]uint64{}
	if x.data != nil {
		data = x.data(s)
	}
	if change != nil {
		change(s, data)
	}
	var list []abi.IoctlAttr
	for i, a := range e.Attrs {
		size, sized := x.sizes[a.Name]
		if !sized {
			size = a.Min
		}
		v, given := data[a.Name]
		switch {
		case given:
			list = append(list, attr(a.ID, size, v))
		case slices.Contains(x.out, a.Name):
			list = append(list, attr(a.ID, size, s.addr+methodOut+uint64(i*methodOutSize)))
		}
	}
	return list
}

// method walks a method through everything that can be wrong with its
// attributes.
func (t *tableCase) method(x *methodExample) {
	const form = "ioctl"
	ask := func(spoil func(s *stand, list []abi.IoctlAttr) []abi.IoctlAttr) string {
		return t.check(form, func(s *stand) error {
			clear(s.mem[rawOut:])
			list := x.args(t.entry, s, nil)
			if spoil != nil {
				list = spoil(s, list)
			}
			return s.ioctl(t.entry.Object, t.entry.Method, nil, list...)
		})
	}
	t.say("as it should be: %s", ask(nil))
	for i := range t.entry.Attrs {
		a := &t.entry.Attrs[i]
		given := x.given(t.entry, t.stand(), a)
		if given {
			t.attribute(a, ask)
		}
		t.say("%s, %v: %s", a.Name, a.Type, given1(given))
	}
	unknown := attr(0x55, 8, 1)
	t.say("an unknown attribute: %s", ask(func(_ *stand, l []abi.IoctlAttr) []abi.IoctlAttr { return append(l, unknown) }))
	unknown.Flags = 0
	t.say("an unknown attribute that is optional: %s", ask(func(_ *stand, l []abi.IoctlAttr) []abi.IoctlAttr { return append(l, unknown) }))
	t.say("no attributes: %s", ask(func(*stand, []abi.IoctlAttr) []abi.IoctlAttr { return nil }))
	if !x.opens {
		t.say("before the context: %s", t.check(form, func(s *stand) error {
			w := t.rawFile()
			defer w.f.Close()
			spare := *s
			spare.raw = w
			return w.ioctl(t.entry.Object, t.entry.Method, nil, x.args(t.entry, &spare, nil)...)
		}))
	}
	for _, wrong := range x.wrong {
		t.drop()
		t.say("%s: %s", wrong.what, t.check(form, func(s *stand) error {
			if wrong.prepare != nil {
				wrong.prepare(s)
			}
			return s.ioctl(t.entry.Object, t.entry.Method, nil, x.args(t.entry, s, wrong.data)...)
		}))
		t.drop()
	}
}

func given1(given bool) string {
	if given {
		return "tried"
	}
	return "not given"
}

func (x *methodExample) given(e *abi.Entry, s *stand, a *abi.Attr) bool {
	return slices.ContainsFunc(x.args(e, s, nil), func(v abi.IoctlAttr) bool { return v.AttrID == a.ID })
}

// attribute spoils one attribute in every way.
func (t *tableCase) attribute(a *abi.Attr, ask func(func(*stand, []abi.IoctlAttr) []abi.IoctlAttr) string) {
	change := func(what string, f func(s *stand, v *abi.IoctlAttr)) {
		t.say("%s %s: %s", a.Name, what, ask(func(s *stand, list []abi.IoctlAttr) []abi.IoctlAttr {
			for i := range list {
				if list[i].AttrID == a.ID {
					f(s, &list[i])
				}
			}
			return list
		}))
	}
	t.say("%s left out: %s", a.Name, ask(func(_ *stand, list []abi.IoctlAttr) []abi.IoctlAttr {
		return slices.DeleteFunc(list, func(v abi.IoctlAttr) bool { return v.AttrID == a.ID })
	}))
	t.say("%s twice: %s", a.Name, ask(func(_ *stand, list []abi.IoctlAttr) []abi.IoctlAttr {
		i := slices.IndexFunc(list, func(v abi.IoctlAttr) bool { return v.AttrID == a.ID })
		return append(list, list[i])
	}))
	change("with its reserved field", func(_ *stand, v *abi.IoctlAttr) { v.AttrData = 1 })
	switch a.Type {
	case abi.AttrHandle, abi.AttrHandleDestroy:
		change("of nothing", func(_ *stand, v *abi.IoctlAttr) { v.Data = 0x7fff0000 })
		change("of more than 32 bits", func(_ *stand, v *abi.IoctlAttr) { v.Data |= 1 << 32 })
		change("negative", func(_ *stand, v *abi.IoctlAttr) { v.Data = ^uint64(0) })
		change("of another type", func(s *stand, v *abi.IoctlAttr) { v.Data = uint64(s.other(a.Object)) })
		change("of 4 bytes", func(_ *stand, v *abi.IoctlAttr) { v.Len = 4 })
	case abi.AttrFD:
		change("of nothing", func(_ *stand, v *abi.IoctlAttr) { v.Data = 0x7fff })
		change("of more than 32 bits", func(_ *stand, v *abi.IoctlAttr) { v.Data |= 1 << 32 })
		change("of another kind", func(s *stand, v *abi.IoctlAttr) {
			v.Data = uint64(s.Channel)
			if a.Object == abi.ObjectCompChannel {
				v.Data = uint64(s.async)
			}
		})
		change("of 4 bytes", func(_ *stand, v *abi.IoctlAttr) { v.Len = 4 })
	case abi.AttrHandleNew, abi.AttrFDNew:
		change("with a number", func(_ *stand, v *abi.IoctlAttr) { v.Data = 5 })
		change("of 4 bytes", func(_ *stand, v *abi.IoctlAttr) { v.Len = 4 })
	default:
		t.bytes(a, change)
	}
}

// bytes spoils an attribute of bytes.
func (t *tableCase) bytes(a *abi.Attr, change func(string, func(*stand, *abi.IoctlAttr))) {
	if a.Min > 0 {
		change(fmt.Sprintf("of %d bytes", a.Min-1), func(_ *stand, v *abi.IoctlAttr) { v.Len = uint16(a.Min - 1) })
	}
	if a.Max < 65535 {
		change(fmt.Sprintf("of %d bytes", a.Max+1), func(s *stand, v *abi.IoctlAttr) {
			v.Len = uint16(a.Max + 1)
			if v.Data < s.addr || v.Data >= s.addr+rawSize {
				v.Data = s.addr + rawIn // too long for a number: zeroes
				clear(s.mem[rawIn : rawIn+64])
			}
		})
	}
	if a.Longer {
		change("with something behind", func(s *stand, v *abi.IoctlAttr) {
			copy(s.mem[rawIn+512:], s.mem[v.Data-s.addr:][:a.Max])
			s.mem[rawIn+512+a.Max] = 1
			v.Data, v.Len = s.addr+rawIn+512, uint16(a.Max+1)
		})
	}
	switch {
	case a.Type == abi.AttrConst:
		change("too large", func(_ *stand, v *abi.IoctlAttr) { v.Data |= 1 << 40 })
	case a.Type == abi.AttrFlags:
		change("unknown", func(_ *stand, v *abi.IoctlAttr) { v.Data |= 1 << 30 })
	case a.Type == abi.AttrOut || a.Min > abi.AttrInlineMax:
		change("nowhere", func(_ *stand, v *abi.IoctlAttr) {
			if v.Len > 0 {
				v.Data = noAddress
			}
		})
	}
}
