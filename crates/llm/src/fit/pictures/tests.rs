use super::*;
use crate::Protocol;
use crate::protocol::rules::USUAL_PICTURES;
use image::{DynamicImage, ImageFormat};
use std::io::Cursor;

fn model() -> Model {
    let mut model = Model::new("p", "m", Protocol::Anthropic, "https://h");
    model.capabilities.input.image = true;
    model
}

fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let mut out = Vec::new();
    DynamicImage::new_rgb8(width, height).write_to(&mut Cursor::new(&mut out), format).unwrap();
    out
}

fn file(mime: &str, bytes: &[u8]) -> File {
    File { mime: mime.into(), filename: Some("x.png".into()), data: FileData::Base64(STANDARD.encode(bytes)) }
}

/// Returns what becomes of a file: its type and size, or the note.
fn sent(file: File, model: &Model, rules: &PictureRules) -> String {
    match (Cx { model, rules }).file(file) {
        Ok(File { mime, data: FileData::Base64(data), .. }) => {
            let bytes = STANDARD.decode(data).unwrap();
            match ImageReader::new(Cursor::new(bytes)).with_guessed_format().unwrap().into_dimensions() {
                Ok((width, height)) => format!("{mime} {width}x{height}"),
                Err(_) => mime,
            }
        }
        Ok(File { data: FileData::Url(url), .. }) => url,
        Err(note) => note,
    }
}

use image::ImageReader;

#[test]
fn pictures_have_the_type_of_their_content_and_a_size_within_the_limits() {
    let rules = PictureRules { most_pixels: 2000, ..USUAL_PICTURES };
    let (png, jpeg) = (ImageFormat::Png, ImageFormat::Jpeg);
    for (mime, bytes, expected) in [
        ("image/png", picture(20, 10, png), "image/png 20x10"),
        ("image/png", picture(20, 10, jpeg), "image/jpeg 20x10"),
        ("application/octet-stream", picture(20, 10, jpeg), "image/jpeg 20x10"),
        ("image/png", picture(2200, 40, png), "image/png 2000x36"),
        ("image/jpeg", picture(40, 4000, jpeg), "image/jpeg 20x2000"),
        ("image/bmp", picture(20, 10, ImageFormat::Bmp), "image/png 20x10"),
        ("image/png", Vec::new(), "[x.png (image/png) is left out: it is empty. Say so to the user.]"),
        ("image/svg+xml", b"<svg/>".to_vec(), "text/plain"),
        (
            "image/png",
            b"<html>".to_vec(),
            "[x.png (image/png) is left out: its content is no picture that can be read. Say so to the user.]",
        ),
        ("image/png", b"\x89PNG\r\n\x1a\n".to_vec(), "image/png"),
        (
            "application/pdf",
            b"PK".to_vec(),
            "[x.png (application/pdf) is left out: it is not a PDF document. Say so to the user.]",
        ),
        ("application/pdf", b"%PDF-1.4".to_vec(), "application/pdf"),
    ] {
        assert_eq!(sent(file(mime, &bytes), &model(), &rules), expected);
    }
}

#[test]
fn a_picture_that_ends_too_early_is_left_out() {
    let whole = picture(20, 10, ImageFormat::Png);
    for length in [33, 40, 60, whole.len() - 12, whole.len() - 4] {
        let note = sent(file("image/png", &whole[..length]), &model(), &USUAL_PICTURES);
        let is_whole = length == whole.len() - 4;
        assert_eq!(note.contains("it ends too early"), !is_whole, "{length}: {note}");
    }
}

#[test]
fn a_type_that_the_provider_does_not_take_is_converted() {
    let rules = PictureRules { types: &["image/png"], ..USUAL_PICTURES };
    assert_eq!(sent(file("image/gif", &picture(9, 9, ImageFormat::Gif)), &model(), &rules), "image/png 9x9");
}

#[test]
fn the_configuration_sets_limits() {
    let mut model = model();
    model.pictures.width = 100;
    let large = || file("image/png", &picture(400, 200, ImageFormat::Png));
    assert_eq!(sent(large(), &model, &USUAL_PICTURES), "image/png 100x50");
    model.pictures.resize = false;
    let note = sent(large(), &model, &USUAL_PICTURES);
    assert!(note.contains("larger than the configuration allows"), "{note}");
}

#[test]
fn the_bytes_of_a_picture_are_limited() {
    let mut noise = image::RgbImage::new(400, 400);
    let mut state = 1_u32;
    for pixel in noise.pixels_mut() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        pixel.0 = state.to_be_bytes()[..3].try_into().unwrap();
    }
    let mut bytes = Vec::new();
    DynamicImage::from(noise).write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
    let mut model = model();
    model.pictures.base64_bytes = 50_000;
    match (Cx { model: &model, rules: &USUAL_PICTURES }).file(file("image/png", &bytes)).unwrap() {
        File { mime, data: FileData::Base64(data), .. } => {
            assert_eq!(mime, "image/jpeg");
            assert!(data.len() <= 50_000);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn addresses_are_of_the_web_or_become_content() {
    let at = |url: &str| File { mime: "image/png".into(), filename: None, data: FileData::Url(url.into()) };
    let (model, rules) = (model(), &USUAL_PICTURES);
    assert_eq!(sent(at("https://h/a.png"), &model, rules), "https://h/a.png");
    assert!(sent(at("file:///a.png"), &model, rules).contains("cannot be read by the provider"));
    let data = format!("data:image/jpeg;base64,{}", STANDARD.encode(picture(3, 3, ImageFormat::Png)));
    assert_eq!(sent(at(&data), &model, rules), "image/png 3x3");
    assert_eq!(
        sent(at("data:text/plain,a%20b"), &model, rules),
        "[a file (image/png) is left out: its content is no picture that can be read. Say so to the user.]"
    );
}

#[test]
fn the_oldest_of_too_many_pictures_are_left_out_in_steps() {
    let rules = PictureRules { most: 8, most_bytes_in_all: 100, ..USUAL_PICTURES };
    for (sizes, expected) in [
        (vec![1; 8], 0),
        (vec![1; 9], 2),
        (vec![1; 10], 2),
        (vec![1; 11], 4),
        (vec![60, 60], 1),
        (vec![60, 1, 1, 60], 2),
        (vec![101], 1),
        (vec![], 0),
    ] {
        assert_eq!(excess(&sizes, &rules), expected, "{sizes:?}");
    }
}
