//go:build linux || darwin

package conform

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// tableTests are made from the schema of everything that can be asked for: a
// case for each supported entry, in each form, and one for all that are not
// supported. cover notes what they see.
func tableTests(cover *coverage) []test {
	var list []test
	var refused []*abi.Entry
	for _, e := range verbsEntries() {
		switch {
		case !e.Supported():
			refused = append(refused, e)
		case e.Form == abi.FormIoctl:
			list = append(list, test{"method/" + e.Name, func(r *rig) { runMethod(r, e, cover) }})
		default:
			list = append(list, test{"command/" + e.Name, func(r *rig) { runCommand(r, e, cover) }})
		}
	}
	return append(list, test{"command/unsupported", func(r *rig) { runRefused(r, refused, cover) }})
}

// verbsEntries are the commands and methods of uverbs devices.
func verbsEntries() []*abi.Entry {
	return slices.DeleteFunc(abi.Schema(), func(e *abi.Entry) bool { return e.Form == abi.FormCM })
}

func runCommand(r *rig, e *abi.Entry, cover *coverage) {
	x := commandCases[e.Name]
	if x == nil {
		x = &commandCase{}
	}
	t := &tableCase{tableRig: newTableRig(r), entry: e, cover: cover}
	t.bare = x.opens
	if e.Command == abi.CmdGetContext || e.Command == abi.CmdCreateCompChannel {
		t.opened = func(s *stand) int32 { return int32(le.Uint32(s.mem[rawOut:])) } // both responses begin with it
	}
	defer t.drop()
	for _, form := range forms(e) {
		t.drop()
		t.command(x, form)
	}
}

func runMethod(r *rig, e *abi.Entry, cover *coverage) {
	x := methodExamples[e.Name]
	if x == nil {
		r.Fatalf("the table has %s as supported, and no example of it is tested", e.Name)
	}
	t := &tableCase{tableRig: newTableRig(r), entry: e, cover: cover}
	t.bare = x.opens
	if e.Object == abi.ObjectAsyncEvent {
		const data = rawArg + abi.IoctlHdrSize + 8 // of the first attribute
		t.opened = func(s *stand) int32 { return int32(le.Uint64(s.mem[data:])) }
	}
	defer t.drop()
	t.method(x)
}

// runRefused makes calls that are not supported, with handles of nothing. The
// errno is the table's on the emulator.
func runRefused(r *rig, list []*abi.Entry, cover *coverage) {
	s := &stand{raw: func() *raw { w, _ := r.raw(); return w }()}
	for _, e := range list {
		var err error
		if e.Form == abi.FormIoctl {
			err = s.ioctl(e.Object, e.Method, nil, goodAttrs(e, s)...)
			cover.note(e.Name, "ioctl", err)
			r.say("%s: %s", e.Name, errText(err))
			continue
		}
		for _, form := range forms(e) {
			in := make([]byte, max(e.Request.Size, 4))
			if e.Form == abi.FormExtended {
				in = make([]byte, 8)
			}
			for i := range in {
				in[i] = 0x77
			}
			err = s.send(e, form, shape{in: in, core: e.Response.Size})
			cover.note(e.Name, form, err)
			r.say("%s by %s: %s", e.Name, form, errText(err))
		}
	}
}

// goodAttrs are well-formed attributes with handles that are there.
func goodAttrs(e *abi.Entry, s *stand) []abi.IoctlAttr {
	var list []abi.IoctlAttr
	for _, a := range e.Attrs {
		switch {
		case !a.Mandatory:
		case a.Object == abi.ObjectPD:
			list = append(list, attr(a.ID, 0, uint64(s.allocPD())))
		case a.Type == abi.AttrConst, a.Type == abi.AttrFlags, a.Type == abi.AttrHandleNew:
			list = append(list, attr(a.ID, a.Min, 0))
		default:
			list = append(list, attr(a.ID, a.Min, s.addr+rawOut))
		}
	}
	return list
}

// forms are the ways in which an entry can be asked for.
func forms(e *abi.Entry) []string {
	if e.Form == abi.FormIoctl {
		return []string{"ioctl"}
	}
	return []string{"write", "ioctl"}
}

// coverage notes the kernels' answers to an entry in a form, of calls that were
// made.
type coverage struct {
	seen map[string]map[string]int // by entry and form: "ok" and errnos, and how often
}

func (c *coverage) note(entry, form string, err error) {
	if c.seen == nil {
		c.seen = map[string]map[string]int{}
	}
	key := entry + " by " + form
	if c.seen[key] == nil {
		c.seen[key] = map[string]int{}
	}
	c.seen[key][errText(err)]++
}

// lacking lists the promises of the table that no call has shown.
func (c *coverage) lacking(table []*abi.Entry) []string {
	var list []string
	for _, e := range table {
		for _, form := range forms(e) {
			key := e.Name + " by " + form
			seen := c.seen[key]
			refused := 0
			for text, n := range seen {
				if text != "ok" && slices.ContainsFunc(errnos, func(x namedErrno) bool { return x.name == text }) {
					refused += n
				}
			}
			switch {
			case e.Supported() && seen["ok"] == 0:
				list = append(list, key+": no success")
			case refused == 0:
				list = append(list, key+": no errno")
			case !e.Supported() && (len(seen) != 1 || seen[errText(e.Errno)] == 0):
				list = append(list, fmt.Sprintf("%s: %v, the table says %s", key, seen, errText(e.Errno)))
			}
		}
	}
	return list
}

// TestTableCoverage: each entry that the table lists as supported was seen to
// succeed, and to fail with an errno, in each of its forms; an unsupported
// entry has the errno that the table says.
func TestTableCoverage(t *testing.T) {
	sys := emulatorSim(t)
	cover := &coverage{}
	for _, tc := range tableTests(cover) {
		t.Run(tc.name, func(t *testing.T) { tc.run(newRig(t, sys)) })
	}
	require.Empty(t, cover.lacking(verbsEntries()))
}

// TestCoverageSeesGaps: the test above can fail.
func TestCoverageSeesGaps(t *testing.T) {
	table := verbsEntries()
	full := func() *coverage {
		c := &coverage{}
		for _, e := range table {
			for _, form := range forms(e) {
				if e.Supported() {
					c.note(e.Name, form, nil)
				}
				c.note(e.Name, form, orError(e))
			}
		}
		return c
	}
	require.Empty(t, full().lacking(table))
	for _, gap := range []struct{ key, text, want string }{
		{"ALLOC_PD by write", "ok", "no success"}, {"ALLOC_PD by ioctl", "EINVAL", "no errno"},
		{"CQ.CQ_CREATE by ioctl", "ok", "no success"}, {"POLL_CQ by write", "EOPNOTSUPP", "no errno"},
	} {
		c := full()
		delete(c.seen[gap.key], gap.text)
		lacks := c.lacking(table)
		require.Len(t, lacks, 1)
		require.True(t, strings.HasPrefix(lacks[0], gap.key+": "+gap.want), lacks[0])
	}
	c := full()
	c.seen["POLL_CQ by ioctl"]["EINVAL"] = 1
	require.Len(t, c.lacking(table), 1)
	more := append(slices.Clone(table), &abi.Entry{Name: "NEW", Form: abi.FormIoctl})
	require.Len(t, full().lacking(more), 1)
}

func orError(e *abi.Entry) error {
	if e.Errno != 0 {
		return e.Errno
	}
	return syscall.EINVAL
}
