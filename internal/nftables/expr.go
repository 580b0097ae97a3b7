package nftables

import (
	"encoding/hex"
	"strings"

	"golang.org/x/sys/unix"
)

// An Expr is one step of a rule. What is loaded goes to the first register, and is taken
// from there. Exprs can be compared.
type Expr struct {
	Name string // as the kernel has it
	// Key says what a "meta" or a "ct" loads.
	Key uint32
	// Base, Offset and Len say which part of the packet a "payload" loads.
	Base, Offset, Len uint32
	// Op is the comparison of a "cmp".
	Op uint32
	// Data is what a "cmp" compares with, or the mask of a "bitwise".
	Data string
	// Verdict is that of an "immediate".
	Verdict uint32
	// Rest is what this package knows no words for: such an expression equals no other one.
	Rest string
}

// Names of expressions.
const (
	Meta      = "meta"
	CT        = "ct"
	Payload   = "payload"
	Cmp       = "cmp"
	Bitwise   = "bitwise"
	Immediate = "immediate"
)

const (
	maxExprs   = 128
	bitwiseOp  = 6 // newer than golang.org/x/sys
	register   = unix.NFT_REG_1
	exprNested = unix.NFTA_LIST_ELEM
)

// NewRule makes a rule of expressions.
func NewRule(exprs []Expr) Rule {
	var b []byte
	for _, e := range exprs {
		one := addText(nil, unix.NFTA_EXPR_NAME, e.Name)
		one = addNested(one, unix.NFTA_EXPR_DATA, e.attrs())
		b = addNested(b, exprNested, one)
	}
	return Rule{Exprs: b}
}

func (e Expr) attrs() []byte {
	value := func(b []byte, typ uint16, v string) []byte {
		return addNested(b, typ, add(nil, unix.NFTA_DATA_VALUE, []byte(v)))
	}
	switch e.Name {
	case Meta:
		return addNumber(addNumber(nil, unix.NFTA_META_KEY, e.Key), unix.NFTA_META_DREG, register)
	case CT:
		return addNumber(addNumber(nil, unix.NFTA_CT_KEY, e.Key), unix.NFTA_CT_DREG, register)
	case Payload:
		b := addNumber(addNumber(nil, unix.NFTA_PAYLOAD_DREG, register), unix.NFTA_PAYLOAD_BASE, e.Base)
		return addNumber(addNumber(b, unix.NFTA_PAYLOAD_OFFSET, e.Offset), unix.NFTA_PAYLOAD_LEN, e.Len)
	case Cmp:
		b := addNumber(addNumber(nil, unix.NFTA_CMP_SREG, register), unix.NFTA_CMP_OP, e.Op)
		return value(b, unix.NFTA_CMP_DATA, e.Data)
	case Bitwise:
		b := addNumber(addNumber(nil, unix.NFTA_BITWISE_SREG, register), unix.NFTA_BITWISE_DREG, register)
		b = addNumber(b, unix.NFTA_BITWISE_LEN, uint32(len(e.Data)))
		return value(value(b, unix.NFTA_BITWISE_MASK, e.Data), unix.NFTA_BITWISE_XOR, strings.Repeat("\x00", len(e.Data)))
	case Immediate:
		b := addNumber(nil, unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
		return addNested(b, unix.NFTA_IMMEDIATE_DATA, addNested(nil, unix.NFTA_DATA_VERDICT, addNumber(nil, unix.NFTA_VERDICT_CODE, e.Verdict)))
	}
	panic("nftables: an expression " + e.Name + " cannot be made")
}

// Parse returns the expressions of a rule.
func (r Rule) Parse() ([]Expr, error) {
	list, err := parse(r.Exprs, maxExprs)
	if err != nil {
		return nil, err
	}
	out := make([]Expr, 0, len(list))
	for _, a := range list {
		inner, err := parse(a.val, maxAttrs)
		if err != nil {
			return nil, err
		}
		var e Expr
		var data []byte
		for _, a := range inner {
			switch a.typ {
			case unix.NFTA_EXPR_NAME:
				e.Name = a.text()
			case unix.NFTA_EXPR_DATA:
				data = a.val
			}
		}
		if !e.fill(data) {
			e = Expr{Name: e.Name, Rest: "0x" + hex.EncodeToString(data)}
		}
		out = append(out, e)
	}
	return out, nil
}

// fill reads what is known of an expression, and reports whether that is all of it.
func (e *Expr) fill(data []byte) bool {
	list, err := parse(data, maxAttrs)
	if err != nil {
		return false
	}
	for _, a := range list {
		n, isNumber := a.number()
		ok := isNumber
		switch (field{e.Name, a.typ}) {
		case field{Meta, unix.NFTA_META_DREG}, field{CT, unix.NFTA_CT_DREG}, field{Payload, unix.NFTA_PAYLOAD_DREG},
			field{Cmp, unix.NFTA_CMP_SREG}, field{Bitwise, unix.NFTA_BITWISE_SREG}, field{Bitwise, unix.NFTA_BITWISE_DREG}:
			ok = ok && n == register
		case field{Immediate, unix.NFTA_IMMEDIATE_DREG}:
			ok = ok && n == unix.NFT_REG_VERDICT
		case field{Meta, unix.NFTA_META_KEY}, field{CT, unix.NFTA_CT_KEY}:
			e.Key = n
		case field{Payload, unix.NFTA_PAYLOAD_BASE}:
			e.Base = n
		case field{Payload, unix.NFTA_PAYLOAD_OFFSET}:
			e.Offset = n
		case field{Payload, unix.NFTA_PAYLOAD_LEN}, field{Bitwise, unix.NFTA_BITWISE_LEN}:
			e.Len = n
		case field{Cmp, unix.NFTA_CMP_OP}:
			e.Op = n
		case field{Bitwise, bitwiseOp}: // newer kernels say that it is a mask
			ok = ok && n == 0
		case field{Cmp, unix.NFTA_CMP_DATA}, field{Bitwise, unix.NFTA_BITWISE_MASK}:
			e.Data, ok = value(a.val)
		case field{Bitwise, unix.NFTA_BITWISE_XOR}:
			var xor string
			xor, ok = value(a.val)
			ok = ok && strings.Trim(xor, "\x00") == ""
		case field{Immediate, unix.NFTA_IMMEDIATE_DATA}:
			e.Verdict, ok = verdict(a.val)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	if e.Name == Bitwise {
		if int(e.Len) != len(e.Data) {
			return false
		}
		e.Len = 0
	}
	return true
}

// A field is an attribute of an expression.
type field struct {
	expr string
	typ  uint16
}

// value is the data of an attribute that holds data.
func value(b []byte) (string, bool) {
	list, err := parse(b, maxAttrs)
	if err != nil || len(list) != 1 || list[0].typ != unix.NFTA_DATA_VALUE || len(list[0].val) > 64 {
		return "", false
	}
	return string(list[0].val), true
}

// verdict is the code of a verdict that names no chain.
func verdict(b []byte) (uint32, bool) {
	list, err := parse(b, maxAttrs)
	if err != nil || len(list) != 1 || list[0].typ != unix.NFTA_DATA_VERDICT {
		return 0, false
	}
	list, err = parse(list[0].val, maxAttrs)
	if err != nil || len(list) != 1 || list[0].typ != unix.NFTA_VERDICT_CODE {
		return 0, false
	}
	return list[0].number()
}
