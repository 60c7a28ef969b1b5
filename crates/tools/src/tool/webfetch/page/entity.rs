//! Resolves the character entities that pages use.

/// The limit for the length of a name or number.
const MAX_NAME: usize = 10;
/// The names of the characters from 160 to 255, in order.
const LATIN: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 \
    sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc \
    Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve \
    Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute \
    acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde \
    ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";
/// Other names, each followed by its character.
const OTHERS: &str = "quot \u{22} amp & apos ' lt < gt > OElig \u{152} oelig \u{153} Scaron \u{160} scaron \u{161} Yuml \
    \u{178} fnof \u{192} circ \u{2c6} tilde \u{2dc} Alpha \u{391} Beta \u{392} Gamma \u{393} Delta \
    \u{394} Epsilon \u{395} Zeta \u{396} Eta \u{397} Theta \u{398} Iota \u{399} Kappa \u{39a} Lambda \
    \u{39b} Mu \u{39c} Nu \u{39d} Xi \u{39e} Omicron \u{39f} Pi \u{3a0} Rho \u{3a1} Sigma \u{3a3} Tau \
    \u{3a4} Upsilon \u{3a5} Phi \u{3a6} Chi \u{3a7} Psi \u{3a8} Omega \u{3a9} alpha \u{3b1} beta \u{3b2} \
    gamma \u{3b3} delta \u{3b4} epsilon \u{3b5} zeta \u{3b6} eta \u{3b7} theta \u{3b8} iota \u{3b9} \
    kappa \u{3ba} lambda \u{3bb} mu \u{3bc} nu \u{3bd} xi \u{3be} omicron \u{3bf} pi \u{3c0} rho \u{3c1} \
    sigmaf \u{3c2} sigma \u{3c3} tau \u{3c4} upsilon \u{3c5} phi \u{3c6} chi \u{3c7} psi \u{3c8} omega \
    \u{3c9} thetasym \u{3d1} upsih \u{3d2} piv \u{3d6} ensp \u{2002} emsp \u{2003} thinsp \u{2009} zwnj \
    \u{200c} zwj \u{200d} lrm \u{200e} rlm \u{200f} ndash \u{2013} mdash \u{2014} lsquo \u{2018} rsquo \
    \u{2019} sbquo \u{201a} ldquo \u{201c} rdquo \u{201d} bdquo \u{201e} dagger \u{2020} Dagger \u{2021} \
    bull \u{2022} hellip \u{2026} permil \u{2030} prime \u{2032} Prime \u{2033} lsaquo \u{2039} rsaquo \
    \u{203a} oline \u{203e} frasl \u{2044} euro \u{20ac} image \u{2111} weierp \u{2118} real \u{211c} \
    trade \u{2122} alefsym \u{2135} larr \u{2190} uarr \u{2191} rarr \u{2192} darr \u{2193} harr \
    \u{2194} crarr \u{21b5} lArr \u{21d0} uArr \u{21d1} rArr \u{21d2} dArr \u{21d3} hArr \u{21d4} forall \
    \u{2200} part \u{2202} exist \u{2203} empty \u{2205} nabla \u{2207} isin \u{2208} notin \u{2209} ni \
    \u{220b} prod \u{220f} sum \u{2211} minus \u{2212} lowast \u{2217} radic \u{221a} prop \u{221d} \
    infin \u{221e} ang \u{2220} and \u{2227} or \u{2228} cap \u{2229} cup \u{222a} int \u{222b} there4 \
    \u{2234} sim \u{223c} cong \u{2245} asymp \u{2248} ne \u{2260} equiv \u{2261} le \u{2264} ge \
    \u{2265} sub \u{2282} sup \u{2283} nsub \u{2284} sube \u{2286} supe \u{2287} oplus \u{2295} otimes \
    \u{2297} perp \u{22a5} sdot \u{22c5} lceil \u{2308} rceil \u{2309} lfloor \u{230a} rfloor \u{230b} \
    lang \u{2329} rang \u{232a} loz \u{25ca} spades \u{2660} clubs \u{2663} hearts \u{2665} diams \
    \u{2666}";

/// Replaces entities by their characters. Unknown ones are kept.
pub(super) fn resolve(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let name = name(after);
        let found = if let Some(number) = name.strip_prefix('#') { numbered(number) } else { named(name) };
        let next = &after[name.len()..];
        // A parameter of an address may have the name of an entity.
        match found.filter(|_| !name.is_empty() && !next.starts_with('=')) {
            Some(found) => {
                out.push(found);
                rest = next.strip_prefix(';').unwrap_or(next);
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn name(after: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '#';
    let end = after.find(|c: char| !is_part(c)).unwrap_or(after.len());
    if end <= MAX_NAME { &after[..end] } else { "" }
}

fn numbered(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(number) => u32::from_str_radix(number, 16).ok()?,
        None => number.parse().ok()?,
    };
    // Browsers show zero and surrogates as the replacement character.
    Some(char::from_u32(code).filter(|found| *found != '\0').unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn named(name: &str) -> Option<char> {
    if let Some(at) = LATIN.split(' ').position(|known| known == name) {
        return char::from_u32(160 + u32::try_from(at).ok()?);
    }
    let mut words = OTHERS.split(' ');
    while let (Some(known), Some(found)) = (words.next(), words.next()) {
        if known == name {
            return found.chars().next();
        }
    }
    None
}
