package rdma

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// field is one value of a row: its JSON key and value, and its text as
// iproute2 prints it. Without key it is text only, without text JSON only.
type field struct {
	key   string
	value any
	text  string
}

// row is one object: its fields in iproute2's order, and values that filters
// look at and that are not printed.
type row struct {
	fields []field
	hidden map[string]string
}

// add adds fields, but those of no value.
func (r *row) add(list ...field) {
	for _, f := range list {
		if f.key != "" || f.text != "" {
			r.fields = append(r.fields, f)
		}
	}
}

// keyed is a value with its key before it in text.
func keyed(key string, v any) field { return field{key, v, fmt.Sprintf("%s %v ", key, v)} }

// hexed is a number that JSON shows as a string of hexadecimal digits.
func hexed(key string, v uint64) field {
	return field{key, fmt.Sprintf("%x", v), fmt.Sprintf("%s 0x%x ", key, v)}
}

// onOff is a switch: true or false in JSON.
func onOff(key string, v bool) field {
	word := "off"
	if v {
		word = "on"
	}
	return field{key, v, key + " " + word + " "}
}

// some and someHex are a value that may be absent.
func some[T any](key string, v *T) field {
	if v == nil {
		return field{}
	}
	return keyed(key, *v)
}

func someHex(key string, v *uint32) field {
	if v == nil {
		return field{}
	}
	return hexed(key, uint64(*v))
}

// list is an array of words on a line of its own.
func list(key string, words []string) field {
	return field{key, words, fmt.Sprintf("\n    %s: <%s>", key, strings.Join(words, ", "))}
}

// print writes rows as the options say.
func (c *call) print(rows []row) error {
	var b bytes.Buffer
	if c.json {
		writeJSON(&b, rows, c.pretty)
	} else {
		for _, r := range rows {
			for _, f := range r.fields {
				b.WriteString(f.text)
			}
			b.WriteByte('\n')
		}
	}
	_, err := c.out.Write(b.Bytes())
	return err
}

// writeJSON writes an array of objects with iproute2's line breaks.
func writeJSON(w io.Writer, rows []row, pretty bool) {
	begin, end := "[", "]"
	if pretty {
		begin, end = "[ ", " ]"
		if len(rows) == 0 {
			end = "]"
		}
	}
	io.WriteString(w, begin)
	for i, r := range rows {
		if i > 0 {
			io.WriteString(w, ",")
		}
		writeObject(w, r, pretty)
	}
	io.WriteString(w, end+"\n")
}

// writeObject writes one object.
func writeObject(w io.Writer, r row, pretty bool) {
	name, colon, close := "", ":", ""
	if pretty {
		name, colon, close = "\n        ", ": ", "\n    "
	}
	io.WriteString(w, "{")
	sep, any := "", false
	for _, f := range r.fields {
		if f.key == "" {
			continue
		}
		io.WriteString(w, sep+name+encode(f.key)+colon+value(f.value, pretty))
		sep, any = ",", true
	}
	if any {
		io.WriteString(w, close)
	}
	io.WriteString(w, "}")
}

// value writes a word, a number, a switch, or an array of words.
func value(v any, pretty bool) string {
	words, ok := v.([]string)
	if !ok {
		return encode(v)
	}
	s := make([]string, len(words))
	for i, word := range words {
		s[i] = encode(word)
	}
	switch {
	case pretty && len(s) > 0:
		return "[ " + strings.Join(s, ",") + " ]"
	case pretty:
		return "[ ]"
	}
	return "[" + strings.Join(s, ",") + "]"
}

// encode is JSON without the escapes that only HTML needs.
func encode(v any) string {
	if s, ok := v.(fmt.Stringer); ok {
		v = s.String()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
