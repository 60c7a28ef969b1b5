//! Makes one picture smaller, or converts its type.

use std::io::Cursor;
use std::panic::AssertUnwindSafe;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Rgba, RgbaImage};

/// Limits of what is decoded.
const MOST_MEMORY_BYTES: u64 = 512 * 1024 * 1024;
const MOST_PIXELS: u32 = 30_000;
/// The qualities of JPEG that are tried, best first.
const QUALITIES: [u8; 3] = [85, 65, 45];
/// How often a picture is made smaller by a quarter if its bytes do not fit.
const STEPS: u32 = 10;

/// The limits for a picture.
#[derive(Debug)]
pub(super) struct Limit {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) base64_bytes: usize,
    pub(super) types: &'static [&'static str],
}

impl Limit {
    /// Returns whether a picture is within the limits. If its pixels cannot be read here, the provider decides: its decoder
    /// may know more, and what it refuses is left out.
    pub(super) fn holds(&self, mime: &str, base64_bytes: usize, bytes: &[u8]) -> bool {
        if !self.types.contains(&mime) || base64_bytes > self.base64_bytes {
            return false;
        }
        let size = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok();
        match size.and_then(|reader| reader.into_dimensions().ok()) {
            Some((width, height)) => (1..=self.width).contains(&width) && (1..=self.height).contains(&height),
            None => true,
        }
    }

    fn fits(&self, bytes: &[u8]) -> bool {
        bytes.len().div_ceil(3) * 4 <= self.base64_bytes
    }
}

/// Returns whether a PNG picture with a readable size ends before its last chunk. No server can decode it.
pub(super) fn is_cut_short(bytes: &[u8]) -> bool {
    /// The mark of the format and the chunk with the size.
    const HEAD_BYTES: usize = 33;
    let Some(chunks) = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n").filter(|_| bytes.len() >= HEAD_BYTES) else {
        return false;
    };
    let mut rest = chunks;
    while let Some((head, after)) = rest.split_at_checked(8) {
        if head.ends_with(b"IEND") {
            return false;
        }
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        // The checksum follows the data.
        match usize::try_from(length).ok().and_then(|length| after.get(length.checked_add(4)?..)) {
            Some(next) => rest = next,
            None => return true,
        }
    }
    true
}

/// Returns a picture within the limits, or `None` if it cannot be decoded or made small enough.
pub(super) fn convert(bytes: Vec<u8>, limit: &Limit) -> Option<(&'static str, Vec<u8>)> {
    // A decoder of foreign data must not end the turn.
    std::panic::catch_unwind(AssertUnwindSafe(|| smaller(&bytes, limit))).ok().flatten()
}

fn smaller(bytes: &[u8], limit: &Limit) -> Option<(&'static str, Vec<u8>)> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MOST_MEMORY_BYTES);
    limits.max_image_width = Some(MOST_PIXELS);
    limits.max_image_height = Some(MOST_PIXELS);
    reader.limits(limits);
    let format = reader.format()?;
    let mut decoder = reader.into_decoder().ok()?;
    let orientation = decoder.orientation().ok();
    let mut picture = DynamicImage::from_decoder(decoder).ok()?;
    if let Some(orientation) = orientation {
        picture.apply_orientation(orientation);
    }
    let (width, height) = (picture.width().min(limit.width), picture.height().min(limit.height));
    if (width, height) != (picture.width(), picture.height()) {
        picture = picture.resize(width.max(1), height.max(1), FilterType::Triangle);
    }
    for _ in 0..STEPS {
        if format != ImageFormat::Jpeg {
            let png = encoded(&picture)?;
            if limit.fits(&png) {
                return Some(("image/png", png));
            }
        }
        for quality in QUALITIES {
            let jpeg = encoded_with_loss(&picture, quality)?;
            if limit.fits(&jpeg) {
                return Some(("image/jpeg", jpeg));
            }
        }
        let (width, height) = (picture.width() * 3 / 4, picture.height() * 3 / 4);
        picture = picture.resize(width.max(1), height.max(1), FilterType::Triangle);
    }
    None
}

fn encoded(picture: &DynamicImage) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // Pictures with 16 bits are larger, and models do not see the difference.
    let picture = if picture.color().has_alpha() {
        DynamicImage::from(picture.to_rgba8())
    } else {
        DynamicImage::from(picture.to_rgb8())
    };
    picture.write_to(&mut Cursor::new(&mut out), ImageFormat::Png).ok()?;
    Some(out)
}

/// JPEG has no transparency, so the background becomes white.
fn encoded_with_loss(picture: &DynamicImage, quality: u8) -> Option<Vec<u8>> {
    let opaque = if picture.color().has_alpha() {
        let mut page = RgbaImage::from_pixel(picture.width(), picture.height(), Rgba([255; 4]));
        image::imageops::overlay(&mut page, &picture.to_rgba8(), 0, 0);
        DynamicImage::from(page).to_rgb8()
    } else {
        picture.to_rgb8()
    };
    let mut out = Vec::new();
    JpegEncoder::new_with_quality(&mut out, quality).encode_image(&opaque).ok()?;
    Some(out)
}
