package vm

import "bytes"

// lineWriter cuts the bytes written to it into lines and hands each over,
// without its end.
type lineWriter struct {
	each func(line string)
	part []byte
}

// maxLine bounds the bytes kept of a line that does not end.
const maxLine = 64 << 10

func (w *lineWriter) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		line, rest, ok := bytes.Cut(w.part, []byte("\n"))
		if !ok {
			break
		}
		w.each(string(line))
		w.part = rest
	}
	if len(w.part) > maxLine {
		w.flush()
	}
	return len(p), nil
}

// flush hands over a last line that had no end.
func (w *lineWriter) flush() {
	if len(w.part) > 0 {
		w.each(string(w.part))
		w.part = nil
	}
}
