package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number writes a value with three digits or more, and commas between thousands.
func number(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100 || v == math.Trunc(v):
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// thousands sets commas into a whole number.
func thousands(digits string) string {
	digits, minus := strings.TrimPrefix(digits, "-"), strings.HasPrefix(digits, "-")
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	if minus {
		return "-" + digits
	}
	return digits
}
