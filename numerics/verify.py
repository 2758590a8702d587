"""Confirm a certificate from its witness file: `python verify.py FILE`, or `draftcert verify FILE`.

`draftcert certify --witness FILE` writes the file. This one shares nothing with what wrote it, imports nothing but
Python's own fractions, json and sys, and computes in integers and fractions only.

A file is about a target distribution p over tokens, a rule that accepts a set A of them, and m candidates. A draft q is
REJECTED if m tokens outside A each have at least the probability of every token of A: its m likeliest may then all lie
outside A. The certificate C is the least KL(p || q) = sum p ln(p / q), in nats, of a rejected draft, and infinite if
fewer than m tokens lie outside A. Why a file that passes is right (Coq: `witness_is_proof` in Statements.v):

1. A. Tokens are ordered by p, likelier first and ties by lowest id. A rule joins, by `and` and `or`, bounds of p from
   below, bounds of the rank from above and conditions on the row, so A is the first n tokens of the order for some n;
   and n is right if the rule holds for the n-th token and not for the next one.
2. C from above. The file holds a rejected draft q, listed where it differs from p.
3. C from below. Let M be the m likeliest tokens outside A. The file holds multipliers l >= 0 of tokens of A and of M,
   those of M at most 1, with equal sums W. Let r = 1 + l on A, 1 - l on M and 1 elsewhere. If all of M have at least
   the probability t of A's likeliest token in a draft q, then sum q r <= 1 + t W - t W = 1. Since ln y <= y - 1 at
   y = q r / p, KL(p || q) >= sum p ln r + sum p - sum q r >= sum p ln r. If other m tokens outside A reach t, exchange
   the probabilities of one of them and of a token of M below t while there is one: since M is at least as likely, the
   divergence does not grow, and in the end the bound holds for it.
4. Both agree: q r = p at every token of the file's q and r, so KL(p || q) = sum p ln r.
5. Digits. That sum is one of logarithms of integers, which integers enclose ever more closely.

The file has one spelling and a seal, by which any one changed character is noticed: the text as an integer changes by
d 256**k, no multiple of a prime. The seal says that the file is whole; 1 to 5 say that it is right.
"""

import json
import sys
from fractions import Fraction


def require(holds, why):
    """Refuse the file unless something holds."""
    if not holds:
        raise ValueError(why)


# Numbers `sum k ln(n)`, written as lists of pairs (n, k) of integers, n > 0.


def twice_artanh(numerator, denominator, bits):
    """Integers around 2**bits times 2 artanh(z) = 2 (z + z**3/3 + ...), for z = numerator/denominator in [0, 1/3].

    `power` is too small by less than 2: by 1 at first, later by 2/9 from before, 2/3 from `square` and 1 from its own
    rounding. So each term is too small by less than 3, and all that are left out, once `power` is 0, are less than 3.
    """
    power = (numerator << bits) // denominator
    square = power * power >> bits
    total, odd = 0, 1
    while power:
        total += power // odd
        power = power * square >> bits
        odd += 2
    return 2 * total, 2 * total + 3 * (odd + 1)


def enclose(powers, bits):
    """Integers around 2**bits times `sum k ln(n)`: ln n = ln h + 2 artanh((n - h) / (n + h)), h the leading bits."""
    known, (two_low, two_high) = {1: (0, 0)}, twice_artanh(1, 3, bits)

    def logarithm(n):
        if n not in known:
            shift = n.bit_length() - (8 if n > 255 else 1)
            head = n >> shift << shift
            (low, high), (low_rest, high_rest) = logarithm(n >> shift), twice_artanh(n - head, n + head, bits)
            known[n] = low + shift * two_low + low_rest, high + shift * two_high + high_rest
        return known[n]

    ends = [[k * end for end in logarithm(n)] for n, k in powers]
    return sum(map(min, ends)), sum(map(max, ends))


def is_zero(powers):
    """Whether `sum k ln(n)` is 0: n**k b**j = g**(k+j) (n/g)**k (b/g)**j, until no two bases share a divisor g."""
    bases, pending = {}, list(powers)
    while pending:
        n, k = pending.pop()
        if n > 1 and k:
            b = next((b for b in bases if Fraction(n, b).denominator < b), None)
            if b is None:
                bases[n] = k
            else:
                g, j = b // Fraction(n, b).denominator, bases.pop(b)
                pending += [(g, k + j), (n // g, k), (b // g, j)]
    return not bases


def sign(powers):
    """The sign of `sum k ln(n)`, exactly: where 256 bits do not tell it from 0, integers do."""
    bits, (low, high) = 64, enclose(powers, 64)
    while not (low > 0 or high < 0):
        if bits == 256 and is_zero(powers):
            return 0
        bits *= 2
        low, high = enclose(powers, bits)
    return 1 if low > 0 else -1


def rounded(x, digits):
    """A positive fraction to this many digits, as 2.14e-1."""
    exponent = len(str(x.numerator)) - len(str(x.denominator))
    exponent -= x < Fraction(10) ** exponent
    mantissa = round(x * Fraction(10) ** (digits - 1 - exponent))
    if mantissa == 10**digits:
        mantissa, exponent = mantissa // 10, exponent + 1
    text = str(mantissa)
    return f"{text[0]}{'.' if digits > 1 else ''}{text[1:]}e{exponent:+d}"


def value(powers, total, digits):
    """`sum k ln(n) / total`, which is 0 without any n and positive else, to this many digits."""
    require(1 <= digits <= 100_000, "a certificate has 1 to 100,000 digits")
    bits = 4 * digits + 64
    while powers:
        low, high = (Fraction(end, total << bits) for end in enclose(powers, bits))
        if low > 0 and rounded(low, digits) == rounded(high, digits):
            return rounded(low, digits)
        bits *= 2
    return "0"


def whole(given):
    """A whole number, not negative."""
    require(type(given) is int and given >= 0, f"{str(given)[:40]!r} is no whole number")
    return given


def rational(given):
    """A rational number, written as text."""
    require(type(given) is str and not given.strip("-/0123456789"), f"{str(given)[:40]!r} is no fraction in quotes")
    return Fraction(given)


class Row:
    """The target: its probabilities are `numerators` over their sum `total`; and which of its tokens a rule accepts."""

    def __init__(self, data):
        self.numerators, self.total = [whole(n) for n in data["row"]["numerators"]], data["row"]["denominator"]
        require(sum(self.numerators) == self.total > 0, "the row does not sum to 1")
        self.order = sorted(range(len(self.numerators)), key=lambda x: (-self.numerators[x], x))
        self.named = {"top": self.p(self.order[0])}
        if data["logit_ratio"] is not None:
            self.named["logit_ratio"] = rational(data["logit_ratio"])

    def p(self, token):
        """The probability of a token."""
        return Fraction(self.numerators[token], self.total)

    def accepts(self, rule, rank):
        """Whether the rule holds for the token of this rank; the likeliest has rank 1."""
        relation, *parts = rule
        if relation in ("and", "or"):
            return (all if relation == "and" else any)([self.accepts(part, rank) for part in parts])
        left, right = parts
        if (relation, left) == ("<=", "rank"):
            return rank <= self.number(right)
        require(relation in (">=", ">"), f"'{relation}' is no relation of a rule")
        above = self.compare(self.p(self.order[rank - 1]) if left == "p" else self.number(left), right)
        return above > 0 or (above == 0 and relation == ">=")

    def number(self, expression):
        """The value of an expression without exponentials."""
        if type(expression) is str:
            return self.named[expression] if expression in self.named else rational(expression)
        operation, first, *others = expression
        require(operation in ("+", "*"), f"'{operation}' is no operation on numbers")
        result = self.number(first)
        for other in map(self.number, others):
            result = result + other if operation == "+" else result * other
        return result

    def compare(self, x, threshold):
        """The sign of the rational x >= 0 minus a threshold."""
        operation, *parts = threshold
        if operation in ("min", "max"):
            return (max if operation == "min" else min)(self.compare(x, part) for part in parts)
        if operation != "exp":
            y = self.number(threshold)
            return (x > y) - (x < y)
        # scale exp(weight H), with the entropy H = - sum p ln(p + floor)
        scale, weight, floor = self.number(parts[0]), rational(parts[1]), rational(parts[2])
        require(x >= 0 and scale >= 0 and floor >= 0, "an exponential is compared below 0")
        if x == 0 or scale == 0:
            return (x > scale) - (x < scale)
        # N d (ln(x / scale) - (w / d) H), where p + floor is (n b + a N) / (N b) for p = n / N and floor = a / b.
        N, w, d, a, b = self.total, weight.numerator, weight.denominator, floor.numerator, floor.denominator
        terms = [((x / scale).numerator, N * d), ((x / scale).denominator, -N * d), (N * b, -w * N)]
        return sign(terms + [(n * b + a * N, w * n) for n in self.numerators if n])


def check(data):
    """What a file proves, in words; refuse one that does not."""
    require(data["format"] == "draftcert witness 1", "this is no witness file of format 1")
    row, m, n = Row(data), whole(data["candidates"]), len(data["accepted"])
    order, tokens = row.order, len(row.order)
    require(1 <= m < tokens, f"{m} candidates of {tokens} tokens")
    accepted, competitors = order[:n], order[n : n + m]
    require(data["accepted"] == accepted, "the accepted tokens are not the likeliest")
    require(n == 0 or row.accepts(data["rule"], n), "a token is listed as accepted that the rule rejects")
    require(n == tokens or not row.accepts(data["rule"], n + 1), "a token is not listed that the rule accepts")
    require(data["competitors"] == competitors, "the competitors are not the likeliest rejected tokens")
    claim = f"of {tokens} tokens, {n} accepted by {json.dumps(data['rule'])}, and {m} proposed"
    if len(competitors) < m:
        unbounded = [data["draft"], data["multipliers"], data["certificate"]] == [None, None, "inf"]
        require(unbounded, "fewer tokens are rejected than are proposed: the certificate is infinite")
        return f"C is infinite {claim}"

    draft, multipliers = ({whole(x): rational(y) for x, y in data[name]} for name in ("draft", "multipliers"))
    require(min(draft.values(), default=0) >= 0, "the draft is negative")
    require(sum(q - row.p(x) for x, q in draft.items()) == 0, "the draft does not sum to 1")
    least = min(draft.get(x, row.p(x)) for x in competitors)
    require(all(draft.get(x, row.p(x)) <= least for x in accepted), "the draft is not rejected")
    require(min(multipliers.values(), default=1) > 0, "a multiplier is not positive")
    factors = {x: 1 + multipliers[x] for x in accepted if x in multipliers}
    factors |= {x: 1 - multipliers[x] for x in competitors if x in multipliers}
    require(factors.keys() == multipliers.keys(), "a multiplier is of neither an accepted token nor a competitor")
    require(min(factors.values(), default=0) >= 0, "a multiplier of a competitor is above 1")
    require(sum(r - 1 for r in factors.values()) == 0, "the multipliers do not balance")
    for x in draft.keys() | factors.keys():
        require(draft.get(x, row.p(x)) * factors.get(x, 1) == row.p(x), f"the bounds differ at token {x}")
    likely = [(row.numerators[x], r) for x, r in factors.items() if row.numerators[x]]
    powers = [(r.numerator, n) for n, r in likely] + [(r.denominator, -n) for n, r in likely]
    digits = len(data["certificate"].partition("e")[0].replace(".", ""))
    require(data["certificate"] == value(powers, row.total, digits), "the certificate's digits are wrong")
    return f"C = {data['certificate']} nats {claim}"


def verify(text):
    """What a witness file proves, in words; a ValueError, with the reason, if it proves nothing."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # the integers of degenerate rows are long
    try:
        data = json.loads(text)
        require(text == json.dumps(data) + "\n", "the file is not spelled as a witness file is")
        seal = data.pop("seal")
        require(seal == str(int.from_bytes(json.dumps(data).encode(), "big") % (2**127 - 1)), "the file was changed")
        return check(data)
    except (ArithmeticError, AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"this is no witness file ({type(error).__name__}: {str(error)[:80]})") from error
    finally:
        sys.set_int_max_str_digits(limit)


if __name__ == "__main__":
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            print("confirmed:", verify(file.read()))
    except (OSError, ValueError) as error:
        sys.exit(f"refused: {error}")
