package main

import (
	"io"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// jsonEntry and jsonAttr have the keys that docs/json.md promises.
type jsonEntry struct {
	Name     string     `json:"name"`
	Form     abi.Form   `json:"form"`
	Command  *uint32    `json:"command,omitempty"`
	Object   *uint16    `json:"object,omitempty"`
	Method   *uint16    `json:"method,omitempty"`
	Request  int        `json:"request,omitempty"`
	Response int        `json:"response,omitempty"`
	Driver   bool       `json:"driver"`
	Attrs    []jsonAttr `json:"attributes,omitempty"`
	Support  string     `json:"support"`
	Reason   string     `json:"reason,omitempty"`
	Errno    string     `json:"errno,omitempty"`
}

type jsonAttr struct {
	Name      string `json:"name"`
	ID        uint16 `json:"id"`
	Type      string `json:"type"`
	Object    string `json:"object,omitempty"`
	Min       int    `json:"min"`
	Max       int    `json:"max"`
	Mandatory bool   `json:"mandatory"`
	Longer    bool   `json:"longer,omitempty"`
}

func printABIJSON(out io.Writer, table []*abi.Entry) error {
	list := make([]jsonEntry, 0, len(table))
	for i := range table {
		list = append(list, newJSONEntry(table[i]))
	}
	return cli.PrintJSON(out, list)
}

func newJSONEntry(e *abi.Entry) jsonEntry {
	j := jsonEntry{
		Name: e.Name, Form: e.Form, Request: e.Request.Size, Response: e.Response.Size, Driver: e.Driver, Support: "supported", Reason: e.Lacks,
	}
	if !e.Supported() {
		j.Support, j.Errno = "unsupported", errnoName(e.Errno)
	}
	switch e.Form {
	case abi.FormIoctl:
		j.Object, j.Method = new(uint16(e.Object)), new(uint16(e.Method))
	case abi.FormCM:
		j.Command = new(uint32(e.CM))
	default:
		j.Command = new(uint32(e.Command))
	}
	for _, a := range e.Attrs {
		row := jsonAttr{Name: a.Name, ID: uint16(a.ID), Type: a.Type.String(), Min: a.Min, Max: a.Max, Mandatory: a.Mandatory, Longer: a.Longer}
		if a.Max == 0 {
			row.Object = a.Object.String()
		}
		j.Attrs = append(j.Attrs, row)
	}
	return j
}
