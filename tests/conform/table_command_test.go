//go:build linux || darwin

package conform

import (
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/abi/abitest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// commandCase is what a kernel is asked beside an entry's example.
type commandCase struct {
	hwIn  int // bytes of the driver's part of the request, which are zero
	ready func(s *stand)
	wrong []wrongState
	// opens: it works on a file without a context, and only there.
	opens bool
	// rxeLacks: Linux 6.1 rxe does not have it, so the answers to wrong
	// requests are held against the kernel's rules and not recorded.
	rxeLacks bool
}

// wrongState is a call that is well-formed and refused.
type wrongState struct {
	what    string
	prepare func(s *stand) // or nil
	request func(s *stand) abi.Struct
}

// tableCase runs the checks of one entry.
type tableCase struct {
	*tableRig
	entry *abi.Entry
	cover *coverage
	quiet bool // results are held against the rules, not written down
	// opened gives the descriptor that a call has opened, if the entry is one
	// that does.
	opened func(s *stand) int32
}

// closeNew closes a file that the case does not need.
func (t *tableCase) closeNew(fd int32) {
	f := must.Get(t.stand().k.Adopt(fd))(t.rig)
	t.must(f.Close())
}

// check makes a call on a stand and gives its errno. A call that did something
// is the stand's last.
func (t *tableCase) check(form string, call func(s *stand) error) string {
	err := call(t.stand())
	if err == nil && t.opened != nil {
		t.closeNew(t.opened(t.stand()))
	}
	t.cover.note(t.entry.Name, form, err)
	text := errText(err)
	if err == nil || text == "EFAULT" {
		t.drop()
	}
	return text
}

// is writes the result of a check down, or holds it against the rules.
func (t *tableCase) is(form, what, got, rule string) {
	switch {
	case !t.quiet:
		t.say("by %s, %s: %s", form, what, got)
	case got != rule:
		t.Errorf("%s by %s, %s: %s, by the kernel's rules %s", t.entry.Name, form, what, got, rule)
	}
}

// command walks an entry of write() through everything that can be wrong with
// it, in a form.
func (t *tableCase) command(x *commandCase, form string) {
	ask := func(spoil func(s *stand, p *shape)) string {
		return t.check(form, func(s *stand) error {
			p := t.shape(s, x)
			if spoil != nil {
				spoil(s, &p)
			}
			return s.send(t.entry, form, p)
		})
	}
	good := ask(nil)
	t.say("by %s, as it should be: %s", form, good)
	if good == "EOPNOTSUPP" && x.rxeLacks {
		return
	}
	t.quiet = x.rxeLacks
	t.lengths(form, ask)
	if t.entry.Response.Size > 0 {
		t.rooms(form, ask)
	}
	if form == "ioctl" && t.entry.Request.Size > abi.AttrInlineMax {
		t.is(form, "request nowhere", ask(func(_ *stand, p *shape) { p.unread = true }), "EFAULT")
	}
	for _, h := range t.example().Handles {
		name := fmt.Sprintf("%v handle at %d", h.Object, h.At)
		t.is(form, name+" of nothing", ask(func(_ *stand, p *shape) { le.PutUint32(p.in[h.At:], 0x7fff0000) }), "ENOENT")
		t.is(form, name+" of another type", ask(func(s *stand, p *shape) { le.PutUint32(p.in[h.At:], s.other(h.Object)) }), "EINVAL")
	}
	t.states(x, form)
	t.quiet = false
}

// shape is the good request.
func (t *tableCase) shape(s *stand, x *commandCase) shape {
	if x.ready != nil {
		x.ready(s)
	}
	return t.shaped(x, t.example().Request(&s.Objects))
}

// shaped is a request of the entry.
func (t *tableCase) shaped(x *commandCase, request abi.Struct) shape {
	in := make([]byte, t.entry.Request.Size)
	request.Put(in)
	return shape{in: in, core: t.entry.Response.Size, hw: t.entry.DriverResponse.Size, hwIn: x.hwIn}
}

// lengths makes the request too short and too long.
func (t *tableCase) lengths(form string, ask func(func(*stand, *shape)) string) {
	unit := 4
	if t.entry.Form == abi.FormExtended {
		unit = 8
	}
	cut := func(n int) string { return ask(func(_ *stand, p *shape) { p.in = p.in[:n] }) }
	if t.entry.Form == abi.FormExtended {
		t.is(form, "the last 8 bytes, which are zero, left out", cut(t.entry.Request.Size-unit), "ok")
	} else {
		var all []string
		for n := unit; n < t.entry.Request.Size; n += unit {
			if t.entry.Command == abi.CmdDestroyCQ && form == "write" && n == 8 {
				continue // rdma-core 18 and 19 wrote so much: Linux reads on behind it (uverbs_main.c: verify_hdr)
			}
			all = append(all, cut(n))
		}
		t.is(form, "any shorter", same(all), orNone("ENOSPC", all))
	}
	long := func(tail byte) string {
		return ask(func(_ *stand, p *shape) { p.in = append(p.in, 0, 0, 0, 0, 0, 0, 0, tail) })
	}
	t.is(form, "8 bytes of zeroes more", long(0), "ok")
	rule := "EOPNOTSUPP"
	if form == "write" && t.entry.Driver && t.entry.Form == abi.FormWrite {
		rule = "ok" // it is the driver's part
	}
	t.is(form, "8 bytes of something more", long(1), rule)
	if form == "write" {
		t.is(form, "header says less", ask(func(_ *stand, p *shape) { p.words = -1 }), "EINVAL")
		t.is(form, "header says more", ask(func(_ *stand, p *shape) { p.words = 1 }), "EINVAL")
	}
}

// rooms makes the room for the response too small, too large, and of no memory.
func (t *tableCase) rooms(form string, ask func(func(*stand, *shape)) string) {
	room := func(core, hw int) string { return ask(func(_ *stand, p *shape) { p.core, p.hw = core, hw }) }
	if t.entry.Form == abi.FormExtended {
		t.is(form, "8 bytes less room", room(t.entry.Response.Size-8, t.entry.DriverResponse.Size), "ok")
	} else {
		var all []string
		for n := 0; n < t.entry.Response.Size; n += 4 {
			all = append(all, room(n, 0))
		}
		t.is(form, "any less room", same(all), orNone("ENOSPC", all))
	}
	if hw := t.entry.DriverResponse.Size; hw > 0 {
		t.is(form, "no room for the driver", room(t.entry.Response.Size, 0), "EINVAL")
		t.is(form, "8 bytes less room for the driver", room(t.entry.Response.Size, hw-8), "EINVAL")
	}
	t.is(form, "8 bytes more room", ask(func(_ *stand, p *shape) { p.core += 8 * (1 - min(p.hw, 1)) }), "ok")
	t.is(form, "response nowhere", ask(func(_ *stand, p *shape) { p.nowhere = true }), "EFAULT")
}

func (t *tableCase) example() *abitest.Command { return abitest.Commands[t.entry.Name] }

// states calls when it is not the time for it.
func (t *tableCase) states(x *commandCase, form string) {
	if !x.opens {
		t.is(form, "before the context", t.check(form, func(s *stand) error {
			w := t.rawFile()
			defer w.f.Close()
			p := t.shape(s, x) // its handles are another file's
			spare := &stand{raw: w}
			return spare.send(t.entry, form, p) // it fails, or t.opened would look at the wrong file
		}), t.lost())
	}
	for _, wrong := range x.wrong {
		t.drop()
		got := t.check(form, func(s *stand) error {
			if wrong.prepare != nil {
				wrong.prepare(s)
			}
			return s.send(t.entry, form, t.shaped(x, wrong.request(s)))
		})
		t.say("by %s, %s: %s", form, wrong.what, got)
		t.drop()
	}
}

// lost is the answer of a command with handles where there are none.
func (t *tableCase) lost() string {
	if len(t.example().Handles) > 0 {
		return "ENOENT"
	}
	return "EINVAL"
}

// same returns the common value of a list, or the list.
func same(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	if slices.ContainsFunc(list, func(s string) bool { return s != list[0] }) {
		return fmt.Sprint(list)
	}
	return list[0]
}

func orNone(rule string, list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return rule
}
