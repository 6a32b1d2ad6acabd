package qmux

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// Line is a record of the capture, the end of a direction, or a fault in it.
// The keys of its JSON are stable.
type Line struct {
	Time      string  `json:"time,omitempty"` // RFC 3339, of the packet that completes it
	Transport string  `json:"transport"`      // tcp, rdma or file
	Src       string  `json:"src,omitempty"`
	Dst       string  `json:"dst,omitempty"`
	Record    uint64  `json:"record,omitempty"` // of its direction, from 1
	Length    int     `json:"length,omitempty"` // bytes without the Size
	Frames    []Frame `json:"frames,omitempty"`
	Event     string  `json:"event,omitempty"` // end or reset
	Problem   string  `json:"problem,omitempty"`

	when time.Time
}

// Frame is a frame of a record.
type Frame struct {
	Name       string            `json:"name"`
	Fields     map[string]uint64 `json:"fields,omitempty"`
	Fin        bool              `json:"fin,omitempty"`
	Error      string            `json:"error,omitempty"`  // CONNECTION_CLOSE: the transport's code
	Reason     string            `json:"reason,omitempty"` // of a close
	Parameters map[string]uint64 `json:"parameters,omitempty"`

	text string
}

// add appends a frame. Parameters that cannot be read are the line's problem.
func (l *Line) add(f *wire.Frame) {
	x := Frame{Name: f.Type.String(), Fin: f.Type.Fin(), text: f.String()}
	for name, value := range f.Fields {
		if x.Fields == nil {
			x.Fields = map[string]uint64{}
		}
		x.Fields[name] = value
	}
	switch {
	case f.Type == wire.TypeConnectionClose:
		x.Error, x.Reason = wire.Code(f.Code).String(), string(f.Data)
	case f.Type == wire.TypeApplicationClose:
		x.Reason = string(f.Data)
	case f.Type.IsParameters():
		var p wire.Parameters
		if err := p.Parse(f.Data); err != nil {
			l.Problem = strings.TrimPrefix(err.Error(), "qmux: ")
		} else {
			x.said(&p)
		}
	}
	l.Frames = append(l.Frames, x)
}

func (x *Frame) said(p *wire.Parameters) {
	x.Parameters = map[string]uint64{}
	for name, value := range p.Numbers {
		x.Parameters[name] = value
	}
	if p.ResetStreamAt {
		x.Parameters["reset_stream_at"] = 1
	}
	x.text += " (" + p.String() + ")"
}

// padded makes a PADDING frame stand for n.
func (x *Frame) padded(n int) {
	x.Fields = map[string]uint64{"len": uint64(n)}
	x.text = fmt.Sprintf("%s len=%d", x.Name, n)
}

// AppendText appends the line as text, whose times have layout's form.
func (l *Line) AppendText(b []byte, layout string) []byte {
	if !l.when.IsZero() {
		b = append(l.when.UTC().AppendFormat(b, layout), ' ')
	}
	if l.Src != "" {
		b = fmt.Appendf(b, "%s > %s ", l.Src, l.Dst)
	}
	word := ""
	if l.Record > 0 {
		b = fmt.Appendf(b, "record %d length %d:", l.Record, l.Length)
		word = " "
	}
	for i := range l.Frames {
		b = append(append(b, word...), l.Frames[i].text...)
		word = "; "
	}
	if l.Event != "" {
		b = append(append(b, word...), l.Event...)
		word = "; "
	}
	if l.Problem != "" {
		b = append(append(append(b, word...), "problem: "...), l.Problem...)
	}
	return append(b, '\n')
}
